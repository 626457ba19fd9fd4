// The sweep over budgets, level by level, on a GPU.
//
// States are numbered by place, as in prudent/kernels/sweep.py, whose sums these are, term by term: U and M of a state
// on a level lie side by side in one 16-byte word, so one gather brings both.  Level b is in line b % window.  Line 0
// begins with the values without budget, which also give those for budgets below 0.  States of a layer do not look at
// each other on the same level; a launch settles some states of one layer on one level.
//
// COST and CHOICE are the smallest types that hold a cost, and the number of an action within its state.
// Every sum has a fixed order, and the one atomic is a maximum: two runs give the same bits.
// LANES threads settle one state, so that more values are on their way at the same time.

typedef long long whole;

#define LANES 2
#define AT_HAND 8  // actions of a lane whose values are kept from the first pass to the second
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

struct Rows {  // where the rows of a model are
    const unsigned *outcome_start;
    const double *probability;
    const int *successor;
    const COST *cost;
    const double *mean_cost;
};

struct Level {  // which level is settled, and how values are weighed
    whole n, b, line, window;
    double accrual, slope;
};

// Return U and M if an action is played.
__device__ __forceinline__ double2 played(const Rows &rows, const Level &level, const double2 *table, unsigned a)
{
    double mean = rows.mean_cost[a], excess = level.accrual * mean;
    unsigned stop = rows.outcome_start[a + 1];
#pragma unroll 5
    for (unsigned o = rows.outcome_start[a]; o < stop; o++) {
        whole c = rows.cost[o], back = level.line - c;
        double p = rows.probability[o], over = c < level.b ? 0.0 : level.slope * (double)(c - level.b);
        back = c < level.b ? (back < 0 ? back + level.window : back) : 0;
        double2 after = table[back * level.n + rows.successor[o]];
        excess = fma(p, after.x + over, excess);
        mean = fma(p, after.y, mean);
    }
    return make_double2(excess, mean);
}

// Settle both objectives of the places first:first + count / LANES on level b, and choose actions.  The lanes of a state
// share its actions out, one to each in turn; then all of them know the least U, and the first of the best actions.
extern "C" __global__ void settle_plan(
    whole count, whole first, whole n, whole start, whole b, whole window, double accrual, double slope, double tie,
    const int *state, const unsigned *action_start, const unsigned *outcome_start, const double *probability,
    const int *successor, const COST *cost, const double *mean_cost, const whole *worst, const whole *action_worst,
    const CHOICE *fallback, double2 *table, double2 *found, CHOICE *choice, unsigned long long *lost)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x, s = first + i / LANES;
    unsigned lane = (unsigned)(i % LANES), begin = 0, end = 0;  // none for threads beyond the last state
    if (i < count) {
        begin = action_start[s];
        end = action_start[s + 1];
    }
    Rows rows = {outcome_start, probability, successor, cost, mean_cost};
    Level level = {n, b, b % window, window, accrual, slope};
    double2 kept[AT_HAND];
    bool safe = i < count && b >= worst[s];
    double least = INFINITE;
    for (unsigned a = begin + lane, k = 0; a < end; a += LANES, k++) {
        double2 value = played(rows, level, table, a);
        if (k < AT_HAND)
            kept[k] = value;
        least = fmin(least, value.x);
    }
    for (unsigned other = LANES / 2; other > 0; other /= 2)
        least = fmin(least, __shfl_xor_sync(~0u, least, other));
    // M decides over the actions that attain U; where U is 0, whole numbers say which do.
    double limit = least * (1.0 + tie), best = INFINITE, attained = least;
    unsigned chosen = ~0u;
    for (unsigned a = begin + lane, k = 0; a < end; a += LANES, k++) {
        double2 value = k < AT_HAND ? kept[k] : played(rows, level, table, a);
        bool allowed = safe ? action_worst[a] <= b : value.x <= limit;
        if (allowed && value.y < best) {
            best = value.y;
            attained = value.x;
            chosen = a - begin;
        }
    }
    for (unsigned other = LANES / 2; other > 0; other /= 2) {
        double their_best = __shfl_xor_sync(~0u, best, other), theirs = __shfl_xor_sync(~0u, attained, other);
        unsigned their_choice = __shfl_xor_sync(~0u, chosen, other);
        if (their_best < best || (their_best == best && their_choice < chosen)) {
            best = their_best;
            attained = theirs;
            chosen = their_choice;
        }
    }
    if (i >= count || lane > 0)
        return;
    double2 settled = make_double2(0.0, 0.0);
    if (begin < end) {  // not a goal
        if (!safe && attained > least && least > 0.0)
            atomicMax(lost, (unsigned long long)__double_as_longlong(attained / least - 1.0));
        settled = make_double2(safe ? 0.0 : least, best);
        choice[state[s]] = chosen == ~0u ? fallback[s] : (CHOICE)chosen;
    }
    table[level.line * n + s] = settled;
    if (s == start)
        *found = settled;
}

// Settle the lower bound on U, rounded down at every step, of the places first:first + count on level b.
extern "C" __global__ void settle_bound(
    whole count, whole first, whole n, whole start, whole b, whole window, double accrual, double slope,
    const unsigned *action_start, const unsigned *outcome_start, const double *probability, const int *successor,
    const COST *cost, const double *mean_cost, const whole *worst, const double *rounding, double *table, double *found)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    whole s = first + i, line = b % window;
    double least = INFINITE;
    unsigned begin = action_start[s], end = b < worst[s] ? action_start[s + 1] : begin;
    for (unsigned a = begin; a < end; a++) {
        double total = accrual * mean_cost[a];
        unsigned stop = outcome_start[a + 1];
#pragma unroll 5
        for (unsigned o = outcome_start[a]; o < stop; o++) {
            whole c = cost[o], back = line - c;
            double over = c < b ? 0.0 : slope * (double)(c - b);
            back = c < b ? (back < 0 ? back + window : back) : 0;
            total = fma(probability[o], table[back * n + successor[o]] + over, total);
        }
        least = fmin(least, (1.0 - rounding[a]) * total);
    }
    least = begin < end ? least : 0.0;
    table[line * n + s] = least;
    if (s == start)
        *found = least;
}
