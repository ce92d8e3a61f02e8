// A decision process for benchmarks: Batsim 4 on a Unix socket (REP of ZMTP 3.0), first come, first served.
// It reads the messages of gridsched only, whose fields have a fixed order, and looks for requests for a moment
// before it lets the operating system wait for them.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <set>
#include <string>

static int peer;

static std::string receive(size_t size) {
    static std::string buffer;
    while (buffer.size() < size) {
        char chunk[65536];
        auto begin = std::chrono::steady_clock::now();
        ssize_t got = -1;
        while (got < 0 && std::chrono::steady_clock::now() - begin < std::chrono::microseconds(200))
            got = recv(peer, chunk, sizeof chunk, MSG_DONTWAIT);
        if (got < 0) got = recv(peer, chunk, sizeof chunk, 0);
        if (got <= 0) _exit(1);
        buffer.append(chunk, got);
    }
    std::string found = buffer.substr(0, size);
    buffer.erase(0, size);
    return found;
}

static void send_all(const std::string &text) {
    for (size_t sent = 0; sent < text.size();) sent += send(peer, text.data() + sent, text.size() - sent, 0);
}

static std::string frame() {
    std::string head = receive(2);
    size_t size = (unsigned char)head[1];
    if (head[0] & 2) {
        head += receive(7);
        size = 0;
        for (int k = 1; k < 9; ++k) size = size << 8 | (unsigned char)head[k];
    }
    return receive(size);
}

static std::string framed(const std::string &body) {
    std::string head("\x01\x00", 2);
    size_t size = body.size();
    if (size < 256) return head + '\0' + char(size) + body;
    head += '\2';
    for (int k = 7; k >= 0; --k) head += char(size >> 8 * k & 255);
    return head + body;
}

static std::string text_after(const std::string &in, const char *key, size_t from) {
    size_t begin = in.find(key, from) + strlen(key);
    return in.substr(begin, in.find('"', begin) - begin);
}

int main(int, char **arguments) {
    const char *path = strstr(arguments[1], "://") + 3;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, (sockaddr *)&address, sizeof address) || listen(server, 1)) return 2;
    peer = accept(server, nullptr, nullptr);
    std::string greeting("\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL", 16);
    send_all(greeting + std::string(64 - greeting.size(), '\0'));
    receive(64);
    frame();
    send_all(std::string("\4\x19\5READY\x0bSocket-Type\0\0\0\3REP", 27));

    struct Job { std::string id; size_t hosts; };
    std::deque<Job> queue;
    std::set<int> free;
    for (bool more = true; more;) {
        frame();
        std::string message = frame(), starts;
        std::string now = message.substr(7, message.find(',') - 7);
        for (size_t at = message.find("\"type\":\""); at != std::string::npos;
             at = message.find("\"type\":\"", at + 8)) {
            const char *kind = message.data() + at + 8;
            if (!strncmp(kind, "JOB_SUBMITTED", 13))
                queue.push_back({text_after(message, "\"job_id\":\"", at),
                                 std::stoul(message.substr(message.find("\"res\":", at) + 6, 9))});
            else if (!strncmp(kind, "JOB_COMPLETED", 13)) {
                std::string hosts = text_after(message, "\"alloc\":\"", at);
                for (char *rest = hosts.data(); *rest;) {
                    int first = strtol(rest, &rest, 10), last = first;
                    if (*rest == '-') last = strtol(rest + 1, &rest, 10);
                    for (; first <= last; ++first) free.insert(first);
                    if (*rest == ' ') ++rest;
                }
            } else if (!strncmp(kind, "SIMULATION_BEGINS", 17)) {
                int count = std::stoi(message.substr(message.find("\"nb_resources\":", at) + 15, 9));
                for (int host = 0; host < count; ++host) free.insert(host);
            } else if (!strncmp(kind, "SIMULATION_ENDS", 15)) more = false;
        }
        while (!queue.empty() && queue.front().hosts <= free.size()) {
            std::string hosts;
            for (size_t k = 0; k < queue.front().hosts;) {
                int first = *free.begin(), last = first - 1;
                while (k < queue.front().hosts && free.erase(last + 1)) ++last, ++k;
                hosts += (hosts.empty() ? "" : " ") + std::to_string(first);
                if (last > first) hosts += "-" + std::to_string(last);
            }
            starts += std::string(starts.empty() ? "" : ",") + "{\"timestamp\":" + now +
                      ",\"type\":\"EXECUTE_JOB\",\"data\":{\"job_id\":\"" + queue.front().id +
                      "\",\"alloc\":\"" + hosts + "\"}}";
            queue.pop_front();
        }
        send_all(framed("{\"now\":" + now + ",\"events\":[" + starts + "]}"));
    }
}
