/* A decision process of Batsim 5 as a library, first come first served, that reads and writes JSON by hand.
 *
 * Compiled with -DDEV it has the C interface from before the release candidate. Jobs get the free hosts with
 * the smallest numbers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON = 2, HOSTS = 4096 };

typedef struct job { char id[64]; int hosts; int on[HOSTS]; struct job *next; } job;

static job *waiting, *running;
static char used[HOSTS];
static int hosts, idle;
static char *answer;
static size_t length, room;

static void say(const char *text)
{
    size_t more = strlen(text);
    if (length + more + 1 > room)
        answer = realloc(answer, room = 2 * (length + more + 1));
    memcpy(answer + length, text, more + 1);
    length += more;
}

/* The value of a key from a place on, before another place. */
static const char *value(const char *from, const char *end, const char *key)
{
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(from, quoted);
    return found && found < end ? found + strlen(quoted) : NULL;
}

/* Behind the object that begins at a place. */
static const char *behind(const char *from)
{
    int depth = 0, quoted = 0;
    for (;; from++) {
        if (*from == '\\')
            from++;
        else if (*from == '"')
            quoted = !quoted;
        else if (!quoted && *from == '{')
            depth++;
        else if (!quoted && *from == '}' && --depth == 0)
            return from + 1;
    }
}

static void copy(char *target, const char *text)
{
    size_t size = strcspn(text + 1, "\"");
    memcpy(target, text + 1, size);
    target[size] = 0;
}

static void append(job **list, job *one)
{
    while (*list)
        list = &(*list)->next;
    one->next = NULL;
    *list = one;
}

static void clear(job **list)
{
    while (*list) {
        job *gone = *list;
        *list = gone->next;
        free(gone);
    }
}

static void end(const char *id)
{
    for (job **place = &running; *place; place = &(*place)->next)
        if (!strcmp((*place)->id, id)) {
            job *gone = *place;
            for (int k = 0; k < gone->hosts; k++)
                used[gone->on[k]] = 0;
            idle += gone->hosts;
            *place = gone->next;
            free(gone);
            return;
        }
}

static void start(job *one, double now)
{
    char text[256];
    snprintf(text, sizeof text, "%s{\"timestamp\":%.17g,\"event_type\":\"ExecuteJobEvent\",\"event\":"
             "{\"job_id\":\"%s\",\"allocation\":{\"host_allocation\":\"",
             answer[length - 1] == '[' ? "" : ",", now, one->id);
    say(text);
    for (int host = 0, count = 0; count < one->hosts; host++)
        if (!used[host]) {
            snprintf(text, sizeof text, count ? " %d" : "%d", host);
            say(text);
            used[host] = 1;
            one->on[count++] = host;
        }
    say("\"}}}");
    idle -= one->hosts;
}

static void begin_answer(double now)
{
    char text[80];
    length = 0;
    snprintf(text, sizeof text, "{\"now\":%.17g,\"events\":[", now);
    say(text);
}

static void say_hello(void)
{
    say("{\"timestamp\":0,\"event_type\":\"EDCHelloEvent\",\"event\":{\"batprotocol_version\":\"0.0.0\","
        "\"decision_component_name\":\"by hand\",\"decision_component_version\":\"1.0\","
        "\"decision_component_commit\":\"\"}}");
}

static void finish_answer(uint8_t **decisions, uint32_t *size)
{
    say("]}");
    *decisions = (uint8_t *)answer;
    *size = (uint32_t)length;
}

#ifdef DEV
uint8_t batsim_edc_init(const uint8_t *data, uint32_t size, uint32_t flags)
{
    return flags != JSON || (size && !memcmp(data, "fail", 4));
}
#else
uint8_t batsim_edc_init(
    const uint8_t *data, uint32_t size, uint32_t *flags, uint8_t **reply, uint32_t *reply_size)
{
    *flags = size && !memcmp(data, "binary", 6) ? 1 : JSON;
    begin_answer(0);
    say_hello();
    finish_answer(reply, reply_size);
    return size && !memcmp(data, "fail", 4);
}
#endif

uint8_t batsim_edc_deinit(void)
{
    clear(&waiting);
    clear(&running);
    memset(used, 0, sizeof used);
    free(answer);
    answer = NULL;
    length = room = 0;
    return 0;
}

uint8_t batsim_edc_take_decisions(
    const uint8_t *what_happened, uint32_t size, uint8_t **decisions, uint32_t *decisions_size)
{
    const char *text = (const char *)what_happened;
    double now = strtod(value(text, text + size, "now"), NULL);
    begin_answer(now);
    for (const char *event = strchr(value(text, text + size, "events"), '{'); event;) {
        const char *stop = behind(event);
        const char *next = *stop == ',' ? strchr(stop, '{') : NULL;
        char kind[64], id[64];
        copy(kind, value(event, stop, "event_type"));
        if (!strcmp(kind, "BatsimHelloEvent")) {
            say_hello();
        } else if (!strcmp(kind, "SimulationBeginsEvent")) {
            hosts = idle = atoi(value(event, stop, "computation_host_number"));
            if (hosts > HOSTS)
                return 1;
        } else if (!strcmp(kind, "JobSubmittedEvent")) {
            job *one = calloc(1, sizeof *one);
            copy(one->id, value(event, stop, "job_id"));
            one->hosts = atoi(value(event, stop, "resource_request"));
            append(&waiting, one);
        } else if (!strcmp(kind, "JobCompletedEvent")) {
            copy(id, value(event, stop, "job_id"));
            end(id);
        }
        event = next;
    }
    while (waiting && waiting->hosts <= idle) {
        job *one = waiting;
        waiting = one->next;
        start(one, now);
        append(&running, one);
    }
    finish_answer(decisions, decisions_size);
    return 0;
}
