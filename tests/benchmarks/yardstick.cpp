// The yardstick of the engine: first come, first served (no backfilling) and EASY on one cluster, as fast as plain
// C++ makes them with the same algorithms. Start times are the same as the engine's, job by job.
//
// Conventions: one scheduling pass after all events of an instant; a job that outruns its expected end is
// expected to run twice its estimate, then four times ...; the estimate of a job is at least 1 s.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr std::int64_t kForever = std::int64_t{1} << 62;
constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();

struct Job {
    std::int64_t submit, run;
    std::int32_t estimate, processors;
};

// --- Ends of running jobs: binary heap by (end, job). ---

struct End {
    std::int64_t time;
    std::int32_t job, processors;
    bool operator<(const End& other) const {  // without branches that would be mispredicted half of the time
        return (time < other.time) | ((time == other.time) & (job < other.job));
    }
};

class EndHeap {
  public:
    explicit EndHeap(std::size_t most) { entries_.reserve(most + 1); }
    std::int64_t next() const { return entries_.empty() ? kForever : entries_.front().time; }

    void push(End entry) {
        std::size_t hole = entries_.size();
        entries_.push_back(entry);
        while (hole > 0) {
            const std::size_t parent = (hole - 1) / 2;
            if (!(entry < entries_[parent])) break;
            entries_[hole] = entries_[parent];
            hole = parent;
        }
        entries_[hole] = entry;
    }

    End pop() {
        const End first = entries_.front();
        const End last = entries_.back();
        entries_.pop_back();
        const std::size_t size = entries_.size();
        if (size == 0) return first;
        End* heap = entries_.data();
        std::size_t hole = 0;
        for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
            child += heap[child + 1] < heap[child];  // behind the last child there is still `last`
            if (!(heap[child] < last)) break;
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = last;
        return first;
    }

  private:
    std::vector<End> entries_;
};

// --- Running jobs by (expected end, job): one sorted array, or blocks of 128 with sums. ---

using Run = End;  // here `time` is the expected end

struct Shadow {
    std::int64_t time;
    std::int64_t available;
};

class PlainList {
  public:
    explicit PlainList(std::size_t most) { runs_.reserve(most + 1); }
    bool empty() const { return runs_.empty(); }
    const Run& first() const { return runs_.front(); }
    void insert(Run run) { runs_.insert(std::lower_bound(runs_.begin(), runs_.end(), run), run); }
    void remove(Run run) { runs_.erase(std::lower_bound(runs_.begin(), runs_.end(), run)); }

    // When `needed` processors are expected to be free, and how many are free then.
    Shadow shadow(std::int64_t available, std::int64_t needed) const {
        const Run* run = runs_.data();
        const Run* const end = run + runs_.size();
        std::int64_t time = 0;
        while (available < needed) {
            time = run->time;
            available += (run++)->processors;
        }
        for (; run != end && run->time == time; ++run) available += run->processors;
        return {time, available};
    }

  private:
    std::vector<Run> runs_;
};

class BlockList {
  public:
    explicit BlockList(std::size_t most) : storage_((4 * most / kSize + 4) * kSize) {
        const std::size_t number = storage_.size() / kSize;
        blocks_.reserve(number);
        for (std::size_t k = number; k-- > 0;) unused_.push_back(&storage_[k * kSize]);
    }
    bool empty() const { return blocks_.empty(); }
    const Run& first() const { return blocks_.front().runs[0]; }

    void insert(Run run) {
        if (blocks_.empty()) add(0, {run, 0, 0, take()});
        std::size_t b = find(run);
        if (blocks_[b].count == kSize) {
            split(b);
            b += blocks_[b].last < run;
        }
        Block& block = blocks_[b];
        Run* place = std::lower_bound(block.runs, block.runs + block.count, run);
        std::memmove(place + 1, place, (block.runs + block.count - place) * sizeof(Run));
        *place = run;
        ++block.count;
        block.processors += run.processors;
        block.last = block.runs[block.count - 1];
    }

    void remove(Run run) {
        const std::size_t b = find(run);
        Block& block = blocks_[b];
        Run* place = std::lower_bound(block.runs, block.runs + block.count, run);
        std::memmove(place, place + 1, (block.runs + block.count - place - 1) * sizeof(Run));
        --block.count;
        block.processors -= run.processors;
        if (block.count == 0) return drop(b);
        block.last = block.runs[block.count - 1];
        if (b + 1 < blocks_.size() && block.count + blocks_[b + 1].count <= kSize / 2) return merge(b);
        if (b > 0 && block.count + blocks_[b - 1].count <= kSize / 2) merge(b - 1);
    }

    Shadow shadow(std::int64_t available, std::int64_t needed) const {
        const Block* block = blocks_.data();
        const Block* const end = block + blocks_.size();
        for (; available + block->processors < needed; ++block) available += block->processors;
        const Run* run = block->runs;
        std::int64_t time = 0;
        while (available < needed) {
            time = run->time;
            available += (run++)->processors;
        }
        while (true) {
            for (; run != block->runs + block->count; ++run) {
                if (run->time != time) return {time, available};
                available += run->processors;
            }
            if (++block == end) return {time, available};
            run = block->runs;
        }
    }

  private:
    static constexpr int kSize = 128;
    struct Block {
        Run last;
        std::int64_t processors;
        std::int64_t count;
        Run* runs;
    };

    std::size_t find(const Run& run) const {
        std::size_t low = 0, high = blocks_.size() - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (blocks_[middle].last < run) low = middle + 1;
            else high = middle;
        }
        return low;
    }
    Run* take() {
        Run* runs = unused_.back();
        unused_.pop_back();
        return runs;
    }
    void add(std::size_t b, Block block) { blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(b), block); }
    void drop(std::size_t b) {
        unused_.push_back(blocks_[b].runs);
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
    }
    void split(std::size_t b) {
        constexpr int half = kSize / 2;
        Block upper{blocks_[b].last, 0, half, take()};
        std::memcpy(upper.runs, blocks_[b].runs + half, half * sizeof(Run));
        for (int k = 0; k < half; ++k) upper.processors += upper.runs[k].processors;
        blocks_[b].count = half;
        blocks_[b].last = blocks_[b].runs[half - 1];
        blocks_[b].processors -= upper.processors;
        add(b + 1, upper);
    }
    void merge(std::size_t b) {
        Block& lower = blocks_[b];
        const Block& upper = blocks_[b + 1];
        std::memcpy(lower.runs + lower.count, upper.runs, upper.count * sizeof(Run));
        lower.count += upper.count;
        lower.processors += upper.processors;
        lower.last = upper.last;
        drop(b + 1);
    }

    std::vector<Run> storage_;
    std::vector<Block> blocks_;
    std::vector<Run*> unused_;
};

// --- Waiting jobs in order of submission: for each size class, 2^k to 2^(k+1) - 1 processors, a segment tree. ---

class WaitingJobs {
  public:
    static constexpr std::int32_t kNobody = kLargest;

    WaitingJobs(const Job* jobs, std::size_t number) : jobs_(jobs), leaf_(number), job_(number) {
        std::size_t numbers[kClasses] = {}, taken[kClasses] = {};
        for (std::size_t j = 0; j < number; ++j) ++numbers[size_class(jobs[j])];
        std::size_t nodes = 0, first = 0;
        for (int k = 0; k < kClasses; ++k) {
            Class& own = classes_[k];
            own.leaves = 1;
            while (own.leaves < numbers[k]) own.leaves *= 2;
            own.first = first;
            own.base = nodes;
            first += numbers[k];
            nodes += 2 * own.leaves;
        }
        nodes_.assign(nodes, kNone);
        for (std::size_t j = 0; j < number; ++j) {
            const int k = size_class(jobs[j]);
            job_[classes_[k].first + taken[k]] = static_cast<std::int32_t>(j);
            leaf_[j] = static_cast<std::int32_t>(classes_[k].leaves + taken[k]++);
        }
    }

    void insert(std::size_t j) {
        const Job& job = jobs_[j];
        Node* const tree = &nodes_[classes_[size_class(job)].base];
        for (auto k = static_cast<std::size_t>(leaf_[j]); k > 0; k /= 2) {
            Node& node = tree[k];
            if (node.processors <= job.processors && node.estimate <= job.estimate) return;
            node.processors = std::min(node.processors, job.processors);
            node.estimate = std::min(node.estimate, job.estimate);
        }
    }

    void remove(std::size_t j) {
        Node* const tree = &nodes_[classes_[size_class(jobs_[j])].base];
        auto k = static_cast<std::size_t>(leaf_[j]);
        tree[k] = kNone;
        for (k /= 2; k > 0; k /= 2) {
            const Node &left = tree[2 * k], &right = tree[2 * k + 1];
            const Node node{std::min(left.processors, right.processors), std::min(left.estimate, right.estimate)};
            if (node.processors == tree[k].processors && node.estimate == tree[k].estimate) return;
            tree[k] = node;
        }
    }

    // What fits: at most `narrow` processors, or at most `wide` for at most `window` seconds.
    struct Gap {
        std::int32_t narrow, wide, window;
        bool admits(std::int32_t processors, std::int32_t estimate) const {
            return processors <= narrow || (processors <= wide && estimate <= window);
        }
    };

    // Finds the first job that fits in each class of small enough jobs; returns the first of all, or kNobody.
    std::int32_t first_fit(const Gap& gap) {
        searched_ = 0;
        for (; searched_ < kClasses && (1 << searched_) <= gap.wide; ++searched_) search(searched_, gap);
        return first_found();
    }

    // The same after `j` was started or has proved not to fit any more.
    std::int32_t next_fit(std::int32_t j, const Gap& gap) {
        while (searched_ > 0 && (1 << (searched_ - 1)) > gap.wide) --searched_;
        if (size_class(jobs_[j]) < searched_) search(size_class(jobs_[j]), gap);
        return first_found();
    }

  private:
    static constexpr int kClasses = 31;
    struct Class {
        std::size_t base, leaves, first;
    };
    struct Node {
        std::int32_t processors, estimate;
    };
    static constexpr Node kNone{kLargest, kLargest};

    static int size_class(const Job& job) { return 31 - __builtin_clz(static_cast<unsigned>(job.processors)); }

    void search(int size_class, const Gap& gap) {
        const Class& own = classes_[size_class];
        const Node* const tree = &nodes_[own.base];
        std::size_t k = 1;
        while (true) {
            if (gap.admits(tree[k].processors, tree[k].estimate)) {
                if (k >= own.leaves) {
                    found_[size_class] = job_[own.first + k - own.leaves];
                    return;
                }
                k *= 2;
            } else {
                while (k & 1) k /= 2;
                if (k == 0) {
                    found_[size_class] = kNobody;
                    return;
                }
                ++k;
            }
        }
    }

    std::int32_t first_found() const {
        std::int32_t first = kNobody;
        for (int k = 0; k < searched_; ++k) first = std::min(first, found_[k]);
        return first;
    }

    const Job* jobs_;
    std::vector<std::int32_t> leaf_, job_;
    std::vector<Node> nodes_;
    Class classes_[kClasses];
    std::int32_t found_[kClasses];
    int searched_ = 0;
};

// --- Schedulers. ---

// First come, first served: the waiting jobs are those from `head` to the last that was submitted.
void first_come_first_served(const Job* jobs, std::size_t number, std::int64_t processors, std::int64_t* starts) {
    EndHeap ends(std::min<std::size_t>(number, static_cast<std::size_t>(processors)));
    std::int64_t free = processors;
    std::size_t head = 0, arrival = 0;
    while (head < number) {
        const std::int64_t now = std::min(ends.next(), arrival < number ? jobs[arrival].submit : kForever);
        while (ends.next() == now) free += ends.pop().processors;
        while (arrival < number && jobs[arrival].submit == now) ++arrival;
        for (; head < arrival && jobs[head].processors <= free; ++head) {
            free -= jobs[head].processors;
            starts[head] = now;
            ends.push({now + jobs[head].run, static_cast<std::int32_t>(head), jobs[head].processors});
        }
    }
}

template <class RunningList>
class Easy {
  public:
    Easy(const Job* jobs, std::size_t number, std::int64_t processors, std::int64_t* starts)
        : jobs_(jobs), number_(number), starts_(starts), free_(processors), 
          ends_(std::min<std::size_t>(number, static_cast<std::size_t>(processors))),
          running_(std::min<std::size_t>(number, static_cast<std::size_t>(processors))), waiting_(jobs, number) {
        std::fill(starts, starts + number, -1);
    }

    void simulate() {
        std::size_t arrival = 0;
        while (arrival < number_ || waiting_count_ > 0) {
            std::int64_t now = arrival < number_ ? jobs_[arrival].submit : kForever;
            now = std::min(now, ends_.next());
            if (!running_.empty()) now = std::min(now, running_.first().time);
            bool changed = false;
            while (ends_.next() == now) {
                complete(now);
                changed = true;
            }
            while (!running_.empty() && running_.first().time == now) {
                correct(now);
                changed = true;
            }
            for (; arrival < number_ && jobs_[arrival].submit == now; ++arrival) {
                if (changed) enqueue(arrival);
                else changed = arrive_alone(arrival, now);
            }
            if (changed) pass(now);
        }
    }

  private:
    void start(std::size_t j, std::int64_t now) {
        const Job& job = jobs_[j];
        const auto index = static_cast<std::int32_t>(j);
        free_ -= job.processors;
        starts_[j] = now;
        ends_.push({now + job.run, index, job.processors});
        running_.insert({now + job.estimate, index, job.processors});
    }

    // First expected end of a running job from `not_before` on.
    std::int64_t expected_end(std::int32_t j, std::int64_t not_before) const {
        std::int64_t length = jobs_[j].estimate;
        while (starts_[j] + length < not_before) length *= 2;
        return starts_[j] + length;
    }

    void complete(std::int64_t now) {
        const End end = ends_.pop();
        free_ += end.processors;
        running_.remove({expected_end(end.job, now), end.job, end.processors});
    }

    void correct(std::int64_t now) {
        Run run = running_.first();
        running_.remove(run);
        run.time = expected_end(run.job, now + 1);
        running_.insert(run);
    }

    void enqueue(std::size_t j) {
        waiting_.insert(j);
        ++waiting_count_;
    }

    void start_beside_head(std::size_t j, std::int64_t now) {
        if (now + jobs_[j].estimate > shadow_) extra_ -= jobs_[j].processors;
        start(j, now);
    }

    // Nothing else has changed, so only the new job needs to be looked at; returns whether it is a new head.
    bool arrive_alone(std::size_t j, std::int64_t now) {
        const Job& job = jobs_[j];
        if (waiting_count_ == 0) {
            if (job.processors <= free_) {
                start(j, now);
                return false;
            }
            enqueue(j);
            return true;
        }
        if (job.processors <= free_ && (job.processors <= extra_ || now + job.estimate <= shadow_))
            start_beside_head(j, now);
        else
            enqueue(j);
        return false;
    }

    void pass(std::int64_t now) {
        for (; waiting_count_ > 0; ++head_) {
            while (starts_[head_] >= 0) ++head_;
            if (jobs_[head_].processors > free_) break;
            waiting_.remove(head_);
            --waiting_count_;
            start(head_, now);
        }
        if (waiting_count_ == 0 || free_ == 0) return;
        const Shadow shadow = running_.shadow(free_, jobs_[head_].processors);
        shadow_ = shadow.time;
        extra_ = shadow.available - jobs_[head_].processors;
        WaitingJobs::Gap gap = gap_at(now);
        std::int32_t j = waiting_.first_fit(gap);
        while (j != WaitingJobs::kNobody) {
            if (gap.admits(jobs_[j].processors, jobs_[j].estimate)) {
                waiting_.remove(static_cast<std::size_t>(j));
                --waiting_count_;
                start_beside_head(static_cast<std::size_t>(j), now);
                gap = gap_at(now);
            }
            j = waiting_.next_fit(j, gap);
        }
    }

    WaitingJobs::Gap gap_at(std::int64_t now) const {
        return {static_cast<std::int32_t>(std::min(extra_, free_)), static_cast<std::int32_t>(free_),
                static_cast<std::int32_t>(std::min<std::int64_t>(shadow_ - now, kLargest))};
    }

    const Job* jobs_;
    std::size_t number_;
    std::int64_t* starts_;
    std::int64_t free_, shadow_ = 0, extra_ = 0;
    std::size_t head_ = 0, waiting_count_ = 0;
    EndHeap ends_;
    RunningList running_;
    WaitingJobs waiting_;
};

}  // namespace

extern "C" {

void fcfs(const Job* jobs, std::size_t number, std::int64_t processors, std::int64_t* starts) {
    first_come_first_served(jobs, number, processors, starts);
}

void easy_blocks(const Job* jobs, std::size_t number, std::int64_t processors, std::int64_t* starts) {
    Easy<BlockList>(jobs, number, processors, starts).simulate();
}

void easy_plain(const Job* jobs, std::size_t number, std::int64_t processors, std::int64_t* starts) {
    Easy<PlainList>(jobs, number, processors, starts).simulate();
}

}  // extern "C"
