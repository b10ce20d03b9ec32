// Memory of torch's tensors on a CPU, from one range of addresses whose pages are kept.
//
// glibc 2.36 asks for more than a tensor's size, so as to align it, and cannot put it into the hole
// that one of its size left; and blocks above 32 MiB it always gives back to the system. Here a block
// goes into the smallest hole that holds it (Knuth, The Art of Computer Programming, 2.5, best fit),
// and what is freed is joined with the holes beside it.

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace {

constexpr size_t kLeast = 1 << 16;          // bytes; smaller blocks are left to the C library
constexpr size_t kAlignment = 64;           // that torch promises
constexpr size_t kApart = 17 * kAlignment;  // so that equal blocks do not share the sets of a cache

class Range {
  public:
    // As many addresses as the machine has memory, which is taken as it is touched.
    Range() {
        const size_t size = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
        void* place = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == MAP_FAILED) return;
        start_ = top_ = static_cast<char*>(place);
        end_ = start_ + size;
    }

    bool exists() const { return start_ != nullptr; }

    bool holds(const void* block) const { return start_ <= block && block < end_; }

    // Null where no hole is large enough and the addresses are used up.
    void* take(size_t size) {
        if (size > size_t(end_ - start_)) return nullptr;
        const size_t room = (size + kApart + kAlignment - 1) / kAlignment * kAlignment;
        const std::lock_guard<std::mutex> lock(mutex_);
        char* block = top_;
        const auto hole = holes_by_size_.lower_bound({room, nullptr});
        if (hole != holes_by_size_.end()) {
            const auto [width, place] = *hole;
            forget(place, width);
            if (width > room) note(place + room, width - room);
            block = place;
        } else if (room <= size_t(end_ - top_)) {
            top_ += room;
        } else {
            return nullptr;
        }
        rooms_.emplace(block, room);
        return block;
    }

    void give_back(void* block) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto known = rooms_.find(static_cast<char*>(block));
        char* place = known->first;
        size_t room = known->second;
        rooms_.erase(known);
        const auto behind = holes_.lower_bound(place);
        if (behind != holes_.begin()) {
            const auto [before, width] = *std::prev(behind);
            if (before + width == place) {
                forget(before, width);
                place = before;
                room += width;
            }
        }
        if (behind != holes_.end() && place + room == behind->first) {
            const size_t width = behind->second;
            forget(place + room, width);
            room += width;
        }
        if (place + room == top_)
            top_ = place;
        else
            note(place, room);
    }

    // Around fork, so that no other thread is in here when the process is copied.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    void note(char* place, size_t width) {
        holes_.emplace(place, width);
        holes_by_size_.emplace(width, place);
    }

    void forget(char* place, size_t width) {
        holes_.erase(place);
        holes_by_size_.erase({width, place});
    }

    std::mutex mutex_;
    char *start_ = nullptr, *end_ = nullptr;
    char* top_ = nullptr;  // behind it nothing is taken
    std::map<char*, size_t> holes_;
    std::set<std::pair<size_t, char*>> holes_by_size_;
    std::unordered_map<char*, size_t> rooms_;  // of the blocks that are taken
};

Range& range() {
    static Range& the_one = *new Range;  // outlives every tensor
    return the_one;
}

void give_back(void* block) {
    if (!block) return;
    c10::profiledCPUMemoryReporter().Delete(block);
    if (range().holds(block))
        range().give_back(block);
    else
        std::free(block);
}

class TensorMemory final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t size) override {
        void* block = size < kLeast ? nullptr : range().take(size);
        if (!block && size && posix_memalign(&block, kAlignment, size)) block = nullptr;
        TORCH_CHECK(block || !size, "not enough memory: you tried to allocate ", size, " bytes");
        if (block) c10::profiledCPUMemoryReporter().New(block, size);  // for torch's profiler
        return {block, block, &::give_back, c10::Device(c10::DeviceType::CPU)};
    }

    c10::DeleterFnPtr raw_deleter() const override { return &::give_back; }

    void copy_data(void* to, const void* from, size_t size) const override {
        default_copy_data(to, from, size);
    }
};

}  // namespace

// 1 if tensors that are made from now on get their memory here; may be called again.
extern "C" int take_over_tensors() {
    static const bool taken = [] {
        if (!range().exists()) return false;
        pthread_atfork([] { range().lock(); }, [] { range().unlock(); }, [] { range().unlock(); });
        c10::SetCPUAllocator(new TensorMemory, /*priority=*/1);  // outlives every tensor, too
        return true;
    }();
    return taken;
}
