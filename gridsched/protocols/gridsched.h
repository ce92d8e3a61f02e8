/* gridsched.h: a scheduler for gridsched as a shared library, in C, C++, Rust or what else C can call.
 *
 *     cc -O2 -shared -fPIC -I"$(dirname "$(gridsched serve --header)")" mine.c -o libmine.so
 *     gridsched simulate LOG --policy ./libmine.so
 *
 * A library has gridsched_abi and gridsched_decide, and gridsched_begin where it remembers something or takes
 * parameters. It runs within the process of the simulation, one simulation at a time.
 *
 * All times are whole seconds. Jobs are called by their places in the workload, clusters by theirs in the
 * platform, from 0 on. This file may be copied into other projects.
 */
#ifndef GRIDSCHED_H
#define GRIDSCHED_H

#include <stdint.h>

#ifdef __cplusplus
#define GRIDSCHED_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define GRIDSCHED_EXPORT __attribute__((visibility("default")))
#endif

/* Version of everything below. */
#define GRIDSCHED_ABI 1

/* A job that waits. */
typedef struct {
    int64_t job;
    int64_t submit_time;
    int64_t estimate;             /* of its run time, on the cluster of its submission */
    int64_t processors;           /* that it takes there, on whole nodes all of them */
    int64_t requested_processors;
    int64_t user;                 /* numbers of the log, -1 where it has none */
    int64_t group;
    int64_t queue;
    int64_t home;                 /* cluster of its submission, -1 for none */
} gridsched_queued;

/* A job that runs. */
typedef struct {
    int64_t job;
    int64_t cluster;
    int64_t processors;           /* that it has */
    int64_t start_time;
    int64_t expected_end;
} gridsched_running;

/* What can be done. */
enum {
    GRIDSCHED_START = 0,          /* job, cluster: start a job of the queue now */
    GRIDSCHED_SEND = 1,           /* job, cluster: put it into the local queue of a cluster */
    GRIDSCHED_WITHDRAW = 2,       /* job: take one that was sent and has not started back */
    GRIDSCHED_REJECT = 3,         /* job: it never runs */
    GRIDSCHED_KILL = 4,           /* job: end a running job */
    GRIDSCHED_REQUEUE = 5,        /* job: end a running job, which waits again */
    GRIDSCHED_CALL = 6            /* time: be asked at that time, too */
};

/* An action; what its kind does not need is not read. */
typedef struct {
    int64_t kind;
    int64_t job;
    int64_t cluster;
    int64_t time;
} gridsched_action;

/* GRIDSCHED_ABI of the header that a library was compiled with. */
GRIDSCHED_EXPORT int64_t gridsched_abi(void);

/* Optional: called before each simulation, to forget the one before and to read the parameters.
 * 0, or another number to refuse them. */
GRIDSCHED_EXPORT int64_t gridsched_begin(const double *parameters, int64_t parameter_count);

/* Called at each instant at which a job is submitted, ends or leaves, an estimate is exceeded, a node fails or
 * comes back, and when GRIDSCHED_CALL said.
 *
 * queue            jobs that wait, in order of entry
 * running          jobs that run, in order of start
 * free             idle processors of each cluster
 * actions          where to write what is done, one after the other
 * action_capacity  how many fit there: two for each job that waits or runs, and more
 *
 * How many actions it has written, or a negative number, which ends the simulation with an error. The arrays
 * show what there was before the first action, and are gone after the call. */
GRIDSCHED_EXPORT int64_t gridsched_decide(
    int64_t now,
    const gridsched_queued *queue, int64_t queue_count,
    const gridsched_running *running, int64_t running_count,
    const int64_t *free, int64_t cluster_count,
    const double *parameters, int64_t parameter_count,
    gridsched_action *actions, int64_t action_capacity);

#endif
