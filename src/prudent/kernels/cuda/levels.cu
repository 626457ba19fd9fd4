// The sweep over budgets, level by level, on a GPU.
//
// States are numbered by place, as in prudent/kernels/levels.py, whose sums these are, term by term: U and M of a state
// on a level lie side by side in one 16-byte word, so one gather brings both.  Level b is in line b % window.  Line 0
// begins with the values without budget, which also give those for budgets below 0.  States of a layer do not look at
// each other on the same level.  So a launch settles a wide layer on one level; narrow layers that follow each other
// are settled by one block, which waits after each of them.
//
// COST and CHOICE are the smallest types that hold a cost, and the number of an action within its state.
// LANES threads settle one state, so that more values are on their way at the same time.
// Every sum has a fixed order, and the one atomic is a maximum: two runs give the same bits.

typedef long long whole;

#define LANES 2
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

#define MODEL \
    whole n, whole start, whole b, whole window, double accrual, double slope, double goal, double rise, \
        whole until, const unsigned *action_start, const unsigned *outcome_start, const double *probability, const int *successor, const COST *cost, \
        const double *mean_cost, const whole *worst
#define PLAN \
    double tie, const int *state, const whole *action_worst, const CHOICE *fallback, double2 *table, double2 *found, \
        CHOICE *choice, unsigned long long *lost
#define BOUND const double *rounding, double *table, double *found
#define CHOICES \
    const int *state, const CHOICE *entry, const whole *entry_start, const whole *low, const whole *high, whole stride, \
        const CHOICE *without, double2 *table, double2 *found

// Return the first objective at a goal with some budget left.
__device__ __forceinline__ double at_goal(whole b, double goal, double rise, whole until)
{
    return b <= until ? goal + rise * (double)b : 0.0;
}

// Return a total and p times a value, the first objective of which is larger by ``over``.
__device__ __forceinline__ double add(double total, double p, double value, double over)
{
    return fma(p, value + over, total);
}

__device__ __forceinline__ double2 add(double2 total, double p, double2 value, double over)
{
    return make_double2(fma(p, value.x + over, total.x), fma(p, value.y, total.y));
}

// Return the values of a table, U and M or one of them, after the outcomes of an action, added to a total.
template <typename Value>
__device__ __forceinline__ Value after(
    Value total, unsigned a, whole n, whole b, whole window, double slope, const unsigned *outcome_start,
    const double *probability, const int *successor, const COST *cost, const Value *table)
{
    whole line = b % window;
    unsigned stop = outcome_start[a + 1];
#pragma unroll 5
    for (unsigned o = outcome_start[a]; o < stop; o++) {
        whole c = cost[o], back = line - c;
        double over = c < b ? 0.0 : slope * (double)(c - b);
        back = c < b ? (back < 0 ? back + window : back) : 0;
        total = add(total, probability[o], table[back * n + successor[o]], over);
    }
    return total;
}

// Return U and M if an action is played.
__device__ __forceinline__ double2 played(
    unsigned a, whole n, whole b, whole window, double accrual, double slope, const unsigned *outcome_start,
    const double *probability, const int *successor, const COST *cost, const double *mean_cost, const double2 *table)
{
    double2 paid = make_double2(accrual * mean_cost[a], mean_cost[a]);
    return after(paid, a, n, b, window, slope, outcome_start, probability, successor, cost, table);
}

// Settle both objectives of a place on level b, and choose its action; ``here`` is false for threads beyond the last.
// The lanes of a state share its actions out, one to each in turn; then all of them know the best one.  Mostly one
// action alone attains U; where others may, a second pass compares their M.
__device__ __forceinline__ void plan_one(whole s, unsigned lane, bool here, MODEL, PLAN)
{
    unsigned begin = here ? action_start[s] : 0, end = here ? action_start[s + 1] : 0, chosen = ~0u;
    bool safe = here && b >= worst[s];  // then U is 0, and whole numbers say which actions attain it
    double least = safe ? 0.0 : INFINITE, next_least = least, best = INFINITE;
    for (unsigned a = safe ? end : begin + lane; a < end; a += LANES) {
        double2 value = played(
            a, n, b, window, accrual, slope, outcome_start, probability, successor, cost, mean_cost, table);
        next_least = fmin(next_least, fmax(least, value.x));
        if (value.x < least) {
            least = value.x;
            best = value.y;
            chosen = a - begin;
        }
    }
    for (unsigned other = LANES / 2; other > 0; other /= 2) {
        double theirs = __shfl_xor_sync(~0u, least, other), their_best = __shfl_xor_sync(~0u, best, other);
        unsigned their_choice = __shfl_xor_sync(~0u, chosen, other);
        next_least = fmin(fmin(next_least, __shfl_xor_sync(~0u, next_least, other)), fmax(least, theirs));
        if (theirs < least) {
            least = theirs;
            best = their_best;
            chosen = their_choice;
        }
    }
    double limit = least * (1.0 + tie), attained = least;
    bool several = next_least <= limit;
    if (several) {
        best = INFINITE;
        chosen = ~0u;
    }
    for (unsigned a = several ? begin + lane : end; a < end; a += LANES) {
        double2 value = played(
            a, n, b, window, accrual, slope, outcome_start, probability, successor, cost, mean_cost, table);
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
    if (!here || lane > 0)
        return;
    double2 settled = make_double2(at_goal(b, goal, rise, until), 0.0);
    if (begin < end) {  // not a goal
        if (!safe && attained > least && least > 0.0)
            atomicMax(lost, (unsigned long long)__double_as_longlong(attained / least - 1.0));
        settled = make_double2(least, best);
        choice[state[s]] = chosen == ~0u ? fallback[s] : (CHOICE)chosen;
    }
    table[b % window * n + s] = settled;
    if (s == start)
        *found = settled;
}

// Settle the lower bound on U of a place on level b, rounded down at every step.
__device__ __forceinline__ void bound_one(whole s, MODEL, BOUND)
{
    whole line = b % window;
    double least = INFINITE;
    unsigned begin = action_start[s], end = b < worst[s] ? action_start[s + 1] : begin;
    for (unsigned a = begin; a < end; a++) {
        double total = after(
            accrual * mean_cost[a], a, n, b, window, slope, outcome_start, probability, successor, cost,
            (const double *)table);
        least = fmin(least, (1.0 - rounding[a]) * total);
    }
    if (action_start[s] == action_start[s + 1])
        least = at_goal(b, goal, rise, until);
    else if (begin == end)
        least = 0.0;
    table[line * n + s] = least;
    if (s == start)
        *found = least;
}

// Evaluate, at a place on level b, the policy that looks its actions up as prudent/kernels/choices.py does.
__device__ __forceinline__ void given_one(whole s, MODEL, CHOICES)
{
    double2 value = make_double2(at_goal(b, goal, rise, until), 0.0);
    if (action_start[s] < action_start[s + 1]) {  // not a goal
        int t = state[s];
        whole left = b < low[t] ? low[t] : b > high[t] ? high[t] : b;
        unsigned number = high[t] < low[t] ? without[t] : entry[entry_start[t] + (left - low[t]) * stride];
        value = played(
            action_start[s] + number, n, b, window, accrual, slope, outcome_start, probability, successor, cost,
            mean_cost, table);
    }
    table[b % window * n + s] = value;
    if (s == start)
        *found = value;
}

#define MODEL_ARGUMENTS \
    n, start, b, window, accrual, slope, goal, rise, until, action_start, outcome_start, probability, successor, cost, \
        mean_cost, worst
#define PLAN_ARGUMENTS tie, state, action_worst, fallback, table, found, choice, lost
#define CHOICES_ARGUMENTS state, entry, entry_start, low, high, stride, without, table, found

// Settle both objectives of the places first:first + count / LANES on level b.
extern "C" __global__ void settle_plan(whole count, whole first, MODEL, PLAN)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    plan_one(first + i / LANES, (unsigned)(i % LANES), i < count, MODEL_ARGUMENTS, PLAN_ARGUMENTS);
}

// The same for layers that begin at layer_start[0:count] and end before layer_start[1:count + 1], by one block.
extern "C" __global__ void __launch_bounds__(1024) settle_plan_layers(whole count, const int *layer_start, MODEL, PLAN)
{
    for (whole layer = 0; layer < count; layer++) {
        whole first = layer_start[layer], size = (layer_start[layer + 1] - first) * LANES;
        for (whole i = threadIdx.x; i < size + threadIdx.x; i += blockDim.x)  // whole warps, to the last state
            plan_one(first + i / LANES, (unsigned)(i % LANES), i < size, MODEL_ARGUMENTS, PLAN_ARGUMENTS);
        __syncthreads();
    }
}

// Settle the lower bound on U of the places first:first + count on level b.
extern "C" __global__ void settle_bound(whole count, whole first, MODEL, BOUND)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i < count)
        bound_one(first + i, MODEL_ARGUMENTS, rounding, table, found);
}

// The same for layers, by one block.
extern "C" __global__ void __launch_bounds__(1024) settle_bound_layers(whole count, const int *layer_start, MODEL, BOUND)
{
    for (whole layer = 0; layer < count; layer++) {
        for (whole s = layer_start[layer] + threadIdx.x; s < layer_start[layer + 1]; s += blockDim.x)
            bound_one(s, MODEL_ARGUMENTS, rounding, table, found);
        __syncthreads();
    }
}

// Evaluate a policy at the places first:first + count on level b.
extern "C" __global__ void settle_given(whole count, whole first, MODEL, CHOICES)
{
    whole i = blockIdx.x * (whole)blockDim.x + threadIdx.x;
    if (i < count)
        given_one(first + i, MODEL_ARGUMENTS, CHOICES_ARGUMENTS);
}

// The same for layers, by one block.
extern "C" __global__ void __launch_bounds__(1024) settle_given_layers(whole count, const int *layer_start, MODEL, CHOICES)
{
    for (whole layer = 0; layer < count; layer++) {
        for (whole s = layer_start[layer] + threadIdx.x; s < layer_start[layer + 1]; s += blockDim.x)
            given_one(s, MODEL_ARGUMENTS, CHOICES_ARGUMENTS);
        __syncthreads();
    }
}
