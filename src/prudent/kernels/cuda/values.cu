// What is known of every state before a sweep, on a GPU: least expected cost and least worst case.
//
// States are numbered by place.  Passes write to new arrays (Jacobi), so no result depends on which thread comes first;
// sums are by thread, each over every n_threads-th state in turn.  COST and CHOICE are as in levels.cu.

typedef long long whole;

#define LANES 2
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#define UNREACHED (1LL << 62)

// Return the cost of an action plus the values after it; if it may stay in its state, of repeating it until it leaves.
__device__ __forceinline__ double repeated(
    unsigned a, int s, const unsigned *outcome_start, const double *probability, const int *successor, const double *k,
    const double *x)
{
    double total = k[a], away = 0.0;
    bool loops = false;
    unsigned stop = outcome_start[a + 1];
#pragma unroll 5
    for (unsigned o = outcome_start[a]; o < stop; o++) {
        int t = successor[o];
        double p = probability[o], here = t == s ? 0.0 : p;
        loops |= t == s;
        away += here;
        total = fma(here, x[t], total);
    }
    return !loops ? total : away > 0.0 ? total / away : INFINITE;
}

// The probability that each action ends the run.
extern "C" __global__ void ends(
    whole n_actions, const unsigned *action_start, const unsigned *outcome_start, const double *probability,
    const int *successor, double *leave)
{
    whole a = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (a >= n_actions)
        return;
    double total = 0.0;
    for (unsigned o = outcome_start[a]; o < outcome_start[a + 1]; o++)
        if (action_start[successor[o]] == action_start[successor[o] + 1])
            total += probability[o];
    leave[a] = total;
}

// One pass of value iteration; gone[s] is the chance that the action taken ends the run.  LANES threads share the
// actions of a state out, and take the first of the best.
extern "C" __global__ void relax(
    whole count, whole n, const unsigned *action_start, const unsigned *outcome_start, const double *probability,
    const int *successor, const double *k, const double *leave, const double *x, double *next, double *gone)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x, s = i / LANES;
    unsigned lane = (unsigned)(i % LANES), begin = s < n ? action_start[s] : 0, end = s < n ? action_start[s + 1] : 0;
    double least = INFINITE;
    unsigned best = ~0u;
    for (unsigned a = begin + lane; a < end; a += LANES) {
        double total = repeated(a, (int)s, outcome_start, probability, successor, k, x);
        if (total < least) {
            least = total;
            best = a;
        }
    }
    for (unsigned other = LANES / 2; other > 0; other /= 2) {
        double theirs = __shfl_xor_sync(~0u, least, other);
        unsigned their_best = __shfl_xor_sync(~0u, best, other);
        if (theirs < least || (theirs == least && their_best < best)) {
            least = theirs;
            best = their_best;
        }
    }
    if (s < n && lane == 0) {
        next[s] = begin < end ? least : 0.0;
        gone[s] = best < end ? leave[best] : 0.0;
    }
}

// By thread: the sums of changes, of their sizes, of the chances to end, and of the values.
extern "C" __global__ void tally(
    whole n_threads, whole n, const double *x, const double *next, const double *gone, double *sums)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i >= n_threads)
        return;
    double drift = 0.0, moved = 0.0, left = 0.0, size = 0.0;
    for (whole s = i; s < n; s += n_threads) {
        double change = next[s] - x[s];
        drift += change;
        moved += fabs(change);
        left += gone[s];
        size += next[s];
    }
    sums[i] = drift;
    sums[n_threads + i] = moved;
    sums[2 * n_threads + i] = left;
    sums[3 * n_threads + i] = size;
}

// Add the same to all values but those that are 0: goals, and states from which a goal is reached at no cost.
extern "C" __global__ void shift(whole n, double change, double *x)
{
    whole s = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (s < n && x[s] > 0.0)
        x[s] = fmax(x[s] + change, 0.5 * x[s]);
}

// Choose the best actions, and check the claim of prudent/engine/values/expected_cost.py with Y = x + luck: by thread,
// the least and the largest factor for which it holds.  As action_gaps and claim_factors in prudent/kernels/blocks.py.
extern "C" __global__ void claim(
    whole n_threads, whole n, const unsigned *action_start, const unsigned *outcome_start, const double *probability,
    const int *successor, const double *k, const double *unit, const double *x, const double *luck, CHOICE *chosen,
    double *least, double *most)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i >= n_threads)
        return;
    double lowest = 0.0, highest = INFINITE;
    for (whole s = i; s < n; s += n_threads) {
        unsigned begin = action_start[s], end = action_start[s + 1], best = begin;
        double value = INFINITE;
        for (unsigned a = begin; a < end; a++) {
            double total = repeated(a, (int)s, outcome_start, probability, successor, k, x);
            if (total < value) {
                value = total;
                best = a;
            }
        }
        chosen[s] = (CHOICE)(best - begin);
        double here = x[s], before = x[s] + luck[s];
        if (!(before >= 0.0 && before < INFINITE))
            lowest = INFINITE;
        for (unsigned a = begin; a < end; a++) {
            double rise = 0.0, size = 0.0, climb = 0.0, reach = 0.0;
            for (unsigned o = outcome_start[a]; o < outcome_start[a + 1]; o++) {
                int t = successor[o];
                double p = probability[o], up = x[t] - here, on = (x[t] + luck[t]) - before;
                rise += p * up;
                size += p * fabs(up);
                climb += p * on;
                reach += p * fabs(on);
            }
            double gap = k[a] + rise, error = unit[a] * (fabs(k[a]) + size), fall = -climb - unit[a] * reach;
            double needed = a == best ? error + fabs(gap) : error - gap;
            if (!(isfinite(needed) && (needed <= 0.0 || fall > 0.0)))
                lowest = INFINITE;
            else if (needed > 0.0)
                lowest = fmax(lowest, needed / fall);
            else if (fall < 0.0)
                highest = fmin(highest, needed / fall);
        }
    }
    least[i] = lowest;
    most[i] = highest;
}

// Return a sum rounded down, or up; exact where it is a double (Knuth).  No product is fused into it.
__device__ __forceinline__ double added(double a, double b, bool up)
{
    double total = __dadd_rn(a, b), part = __dadd_rn(total, -a);
    double lack = __dadd_rn(__dadd_rn(a, -__dadd_rn(total, -part)), __dadd_rn(b, -part));
    return (up ? lack > 0.0 : lack < 0.0) ? nextafter(total, up ? INFINITE : -INFINITE) : total;
}

// Fill in bounds on values, x -+ factor (x + luck), and let values be within them.
extern "C" __global__ void enclose(
    whole n, double factor, const double *luck, double *x, double *lower, double *upper)
{
    whole s = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (s >= n)
        return;
    double error = __dmul_rn(factor, x[s] + luck[s]);
    double low = fmax(added(x[s], -error, false), 0.0), high = added(x[s], error, true);
    lower[s] = low;
    upper[s] = high;
    x[s] = fmin(fmax(x[s], low), high);
}

// The worst cases to begin with: 0 at goals, else infinite.
extern "C" __global__ void begin_worst(whole n, const unsigned *action_start, whole *value)
{
    whole s = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (s < n)
        value[s] = action_start[s] == action_start[s + 1] ? 0 : UNREACHED;
}

// Lower the worst cases, in place, to the least over actions of the largest after them.  Values only fall, and whoever
// comes first they end up the same.
extern "C" __global__ void lower_worst(
    whole n, const unsigned *action_start, const unsigned *outcome_start, const int *successor, const COST *cost,
    volatile whole *value, int *changed)
{
    whole s = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (s >= n || action_start[s] == action_start[s + 1])
        return;
    whole least = value[s], before = least;
    for (unsigned a = action_start[s]; a < action_start[s + 1]; a++) {
        whole most = 0;
        for (unsigned o = outcome_start[a]; o < outcome_start[a + 1] && most < least; o++) {
            whole after = value[successor[o]] + (whole)cost[o];
            most = after > most ? after : most;
        }
        least = most < least ? most : least;
    }
    if (least < before) {
        value[s] = least;
        *changed = 1;
    }
}

// The worst case after each action.
extern "C" __global__ void worst_after(
    whole n_actions, const unsigned *outcome_start, const int *successor, const COST *cost, const whole *value,
    whole *after)
{
    whole a = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (a >= n_actions)
        return;
    whole most = 0;
    for (unsigned o = outcome_start[a]; o < outcome_start[a + 1]; o++) {
        whole here = value[successor[o]] + (whole)cost[o];
        most = here > most ? here : most;
    }
    after[a] = most < UNREACHED ? most : UNREACHED;
}
