/* EASY backfilling. Parameter: how many jobs are looked at; all by default. */
#include <stdlib.h>

#include "gridsched.h"

typedef struct { int64_t end, processors; } release;

static int64_t depth;

int64_t gridsched_abi(void) { return GRIDSCHED_ABI; }

int64_t gridsched_begin(const double *parameters, int64_t parameter_count)
{
    depth = parameter_count > 0 ? (int64_t)parameters[0] : INT64_MAX;
    return parameter_count > 1 || depth < 1;
}

static int earlier(const void *left, const void *right)
{
    const release *a = left, *b = right;
    return (a->end > b->end) - (a->end < b->end);
}

int64_t gridsched_decide(
    int64_t now, const gridsched_queued *queue, int64_t queue_count, const gridsched_running *running,
    int64_t running_count, const int64_t *free_processors, int64_t cluster_count, const double *parameters,
    int64_t parameter_count, gridsched_action *actions, int64_t action_capacity)
{
    int64_t count = 0, idle = free_processors[0], shadow = -1, extra = 0;
    for (int64_t place = 0; place < queue_count && place < depth; place++) {
        const gridsched_queued *job = &queue[place];
        int in_time = shadow < 0 || now + job->estimate <= shadow;
        if (job->processors <= idle && (in_time || job->processors <= extra)) {
            actions[count++] = (gridsched_action){GRIDSCHED_START, job->job, 0, 0};
            idle -= job->processors;
            extra -= in_time ? 0 : job->processors;
        } else if (shadow < 0) {  /* the head of the queue: when may it start, and what is idle besides? */
            int64_t releases = running_count + place;
            release *ends = malloc((releases + 1) * sizeof *ends);
            if (!ends)
                return -1;
            for (int64_t k = 0; k < running_count; k++)
                ends[k] = (release){running[k].expected_end, running[k].processors};
            for (int64_t k = 0; k < place; k++)
                ends[running_count + k] = (release){now + queue[k].estimate, queue[k].processors};
            qsort(ends, releases, sizeof *ends, earlier);
            shadow = now;
            extra = idle - job->processors;
            for (int64_t k = 0; k < releases && (extra < 0 || ends[k].end <= shadow); k++) {
                shadow = ends[k].end;
                extra += ends[k].processors;
            }
            free(ends);
        }
    }
    return count;
}
