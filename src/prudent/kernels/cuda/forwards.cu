// Following a policy forwards on a GPU: each place pulls what arrives there on a level.
//
// The chain is laid out as in prudent/kernels/arrivals.py, and the mass as in prudent/kernels/inflow.py: level t is in
// line t % window of a table by level and place.  Every sum has a fixed order, and no two threads write to the same
// number: two runs give the same bits.  COST and CHOICE are as in levels.cu.

typedef long long whole;

// Look up the actions that are played with b levels left, at the places that play several.
extern "C" __global__ void choose(
    whole count, whole line, whole b, const int *changing, const int *state, const CHOICE *entry,
    const whole *entry_start, const whole *low, const whole *high, whole stride, const CHOICE *without, CHOICE *number)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    int r = changing[i], s = state[r];
    whole left = b < low[s] ? low[s] : b > high[s] ? high[s] : b;
    number[line + r] = b <= 0 || high[s] < low[s] ? without[s] : entry[entry_start[s] + (left - low[s]) * stride];
}

// Add up what arrives by the arcs start[r]:start[r + 1], for the rows first:first + count; those up to ``sure`` count
// on all levels, the others where their action is played.  A run begins in row ``entered``.
extern "C" __global__ void arrive(
    whole count, whole first, whole t, whole window, whole n, whole entered, const whole *start, const whole *sure,
    const int *source, const COST *cost, const CHOICE *playing, const double *probability, const double *mass,
    const CHOICE *number, double *out)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    whole r = first + i, line = t % window;
    double total = r == entered ? 1.0 : 0.0;
    for (whole arc = start[r]; arc < start[r + 1]; arc++) {
        whole back = line - (whole)cost[arc];
        whole at = (back < 0 ? back + window : back) * n + source[arc];
        bool counts = (whole)cost[arc] <= t && (arc < sure[r] || number[at] == playing[arc]);
        total += counts ? probability[arc] * mass[at] : 0.0;
    }
    out[r] = total;
}

// Add the mass on a level to what was met at each place.
extern "C" __global__ void meet(whole count, const double *mass, double *met)
{
    whole r = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (r < count)
        met[r] += mass[r];
}

// Add the mass on a level to the plays of the actions that it is played by, at the places that play several.
extern "C" __global__ void play(
    whole count, const int *changing, const int *state, const int *action_start, const double *mass,
    const CHOICE *number, double *played)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i < count)
        played[action_start[state[changing[i]]] + number[changing[i]]] += mass[changing[i]];
}
