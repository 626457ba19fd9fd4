// The sweep over budgets in tiles of levels, on a GPU: models without cycles.
//
// A node is a state, or an outcome list that several actions share (prudent/engine/sweep/tile_layout.py).  At level t
// the budget of a node is t - delay.  Tables are by node and level, level t in column t % width; they also have the
// values for budgets up to 0, so every sum is over plain stretches.  One block settles one node for 128 levels: all its
// actions and outcomes are added up in registers.  Nodes of a layer do not look at each other.
//
// CHOICE is the smallest type that holds the number of an action within its state.  Every sum has a fixed order, and
// the one atomic is a maximum: two runs give the same bits.

typedef long long whole;

#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

struct __align__(16) Outcome {
    double probability;
    int successor;
    int back;  // how many levels back its successor is looked up
};

// Return ``value`` plus what the outcomes of an action add at a column.
__device__ __forceinline__ double added_up(
    const unsigned *outcome_start, const Outcome *outcome, unsigned a, double value, const double *table, int column,
    whole width)
{
    unsigned stop = outcome_start[a + 1];
#pragma unroll 4
    for (unsigned o = outcome_start[a]; o < stop; o++) {
        Outcome each = outcome[o];
        int at = column - each.back;
        at = at < 0 ? at + (int)width : at;
        value = fma(each.probability, table[each.successor * width + at], value);
    }
    return value;
}

// Fill in the levels first:first + count of all nodes, none with any budget.
extern "C" __global__ void fill_past(
    whole items, whole first, whole count, whole width, double slope, int plan, const int *delay, const double *base,
    const double *base_mean, double *excess, double *mean)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i >= items)
        return;
    whole s = i / count, t = first + i % count, column = ((t % width) + width) % width;
    excess[s * width + column] = base[s] - slope * (double)(t - delay[s]);
    if (plan)
        mean[s * width + column] = base_mean[s];
}

// Settle both objectives, with ``plan``, or the first alone, of the nodes of a layer for the levels first:last.
extern "C" __global__ void settle_nodes(
    whole first, whole last, whole width, whole rows, whole n_states, double accrual, double slope, double goal,
    double rise, whole until, double tie, int plan, const int *node, const unsigned *action_start, const unsigned *outcome_start, const Outcome *outcome,
    const double *mean_cost, const int *delay, const double *base, const double *base_mean, const whole *worst,
    const whole *action_worst, const whole *calm, const CHOICE *base_choice, double *excess, double *mean, CHOICE *choice,
    unsigned long long *lost)
{
    whole t = first + blockIdx.y * (whole)blockDim.x + threadIdx.x;
    if (t >= last)
        return;
    int s = node[blockIdx.x], column = (int)(t % width);
    whole b = t - delay[s];
    unsigned begin = action_start[s], end = action_start[s + 1];
    whole here = s * width + column;
    if (b <= 0 || begin == end) {  // no budget, or a goal
        excess[here] = b <= 0 ? base[s] - slope * (double)b : b <= until ? goal + rise * (double)b : 0.0;
        if (plan)
            mean[here] = b <= 0 ? base_mean[s] : 0.0;
        return;
    }
    // First objective: U(s, b) = min over a of the expected U of what follows.
    bool safe = b >= worst[s];
    double least = safe ? 0.0 : INFINITE, second = INFINITE;
    unsigned chosen = begin;
    for (unsigned a = begin; a < (safe ? begin : end); a++) {
        double total = added_up(outcome_start, outcome, a, accrual * mean_cost[a], excess, column, width);
        if (total < least) {
            second = least;
            least = total;
            chosen = a;
        } else {
            second = fmin(second, total);
        }
    }
    excess[here] = least;
    if (!plan)
        return;
    // Second objective: M over the actions that attain U.  Mostly there is one; where U is 0, whole numbers say which.
    double limit = least * (1.0 + tie), best;
    if (b >= calm[s]) {
        best = base_mean[s];
        chosen = begin + base_choice[s];
    } else if (!safe && second > limit) {
        best = added_up(outcome_start, outcome, chosen, mean_cost[chosen], mean, column, width);
    } else {
        best = INFINITE;
        double attained = least;
        for (unsigned a = begin; a < end; a++) {
            double total = 0.0;
            if (!safe)
                total = added_up(outcome_start, outcome, a, accrual * mean_cost[a], excess, column, width);
            if (safe ? action_worst[a] > b : total > limit)
                continue;
            double other = added_up(outcome_start, outcome, a, mean_cost[a], mean, column, width);
            if (other < best) {
                best = other;
                attained = total;
                chosen = a;
            }
        }
        if (!safe && attained > least && least > 0.0)
            atomicMax(lost, (unsigned long long)__double_as_longlong(attained / least - 1.0));
    }
    mean[here] = best;
    if (s < n_states)
        choice[b % rows * n_states + s] = (CHOICE)(chosen - begin);
}
