/* First come, first served. */
#include "gridsched.h"

int64_t gridsched_abi(void) { return GRIDSCHED_ABI; }

int64_t gridsched_decide(
    int64_t now, const gridsched_queued *queue, int64_t queue_count, const gridsched_running *running,
    int64_t running_count, const int64_t *free, int64_t cluster_count, const double *parameters,
    int64_t parameter_count, gridsched_action *actions, int64_t action_capacity)
{
    int64_t count = 0, idle = free[0];
    while (count < queue_count && queue[count].processors <= idle) {
        idle -= queue[count].processors;
        actions[count] = (gridsched_action){GRIDSCHED_START, queue[count].job, 0, 0};
        count++;
    }
    return count;
}
