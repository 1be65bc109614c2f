// A stand-in for libtorch_cpu.so: what it exports of autograd, and an engine with a thread of its
// own. A node is laid out as in torch/csrc/autograd/function.h: with std::shared_ptr up to
// PyTorch 2.12, with its own count since (INTRUSIVE).
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace torch::autograd {
#ifdef INTRUSIVE
struct Node {
  virtual ~Node() = default;
  std::atomic<std::uint64_t> count{1ull << 32 | 1};
  std::uint64_t sequence = 0, topological = 0;
  bool has_parent = false;
  std::uint64_t thread = 0;
};
struct Held {  // c10::intrusive_ptr
  explicit Held(Node* of) : node(of) {}
  Held(const Held& other) : node(other.node) {
    if (node != nullptr)
      ++node->count;
  }
  Held& operator=(const Held& other) {
    Held copy(other);
    std::swap(node, copy.node);
    return *this;
  }
  ~Held() {
    if (node != nullptr && (--node->count & 0xffffffff) == 0)
      delete node;
  }
  Node* node;
};
Held make() {
  return Held(new Node);
}
Node* get(const Held& held) {
  return held.node;
}
std::uint64_t references(const Held& held) {
  return held.node->count & 0xffffffff;
}
#else
struct Node : std::enable_shared_from_this<Node> {
  virtual ~Node() = default;
  std::uint64_t sequence = 0, topological = 0;
  bool has_parent = false;
  std::uint64_t thread = 0;
};
using Held = std::shared_ptr<Node>;
Held make() {
  return std::make_shared<Node>();
}
Node* get(const Held& held) {
  return held.get();
}
std::uint64_t references(const Held& held) {
  return static_cast<std::uint64_t>(held.use_count());
}
void deleteNode(Node* node) {
  delete node;
}
#endif

thread_local Held current{nullptr};
Held get_current_node() {
  return current;
}
}  // namespace torch::autograd

namespace at {
namespace {
thread_local std::uint64_t next_number = 0, thread_number = 0;
std::atomic<std::uint64_t> threads{0};
}  // namespace
namespace sequence_number {
std::uint64_t peek() {
  return next_number;
}
}  // namespace sequence_number
struct RecordFunction {
  static std::uint64_t currentThreadId() {
    if (thread_number == 0)
      thread_number = ++threads;
    return thread_number;
  }
};
}  // namespace at

namespace {
std::vector<torch::autograd::Held> graph;

void launch(const char* name, void** parameters) {
  using Launch = int (*)(const void*,
                         unsigned,
                         unsigned,
                         unsigned,
                         unsigned,
                         unsigned,
                         unsigned,
                         unsigned,
                         void*,
                         void**,
                         void**);
  reinterpret_cast<Launch>(dlsym(RTLD_DEFAULT, "cuLaunchKernel"))(
      name, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
}
}  // namespace

extern "C" {
// An operator of the forward pass leaves its function, and returns where that stands.
std::uint64_t begin_operator() {
  graph.push_back(torch::autograd::make());
  torch::autograd::get(graph.back())->sequence = at::next_number++;
  torch::autograd::get(graph.back())->thread = at::RecordFunction::currentThreadId();
  return graph.size() - 1;
}

// Evaluates functions, each and behind it the one that adds up its gradient: both launch a kernel
// of that name. How many references the launches left wrong.
std::uint64_t evaluate(const std::uint64_t* places,
                       const char** names,
                       std::uint64_t count,
                       void** parameters) {
  std::uint64_t wrong = 0;
  std::thread engine([&] {
    const torch::autograd::Held sums = torch::autograd::make();
    torch::autograd::get(sums)->sequence = ~std::uint64_t{0};
    for (std::uint64_t i = 0; i < count; ++i)
      for (const torch::autograd::Held& of : {graph[places[i]], sums}) {
        const torch::autograd::Held task = of;
        torch::autograd::current = task;
        const std::uint64_t before = torch::autograd::references(task);
        launch(names[i], parameters);
        wrong += torch::autograd::references(task) != before;
        torch::autograd::current = torch::autograd::Held(nullptr);
      }
  });
  engine.join();
  graph.clear();
  return wrong;
}

// One function, which launches and has Python make a part of the forward pass again.
void evaluate_again(std::uint64_t place, const char* name, void** parameters, void (*again)()) {
  std::thread engine([&] {
    const torch::autograd::Held task = graph[place];
    torch::autograd::current = task;
    launch(name, parameters);
    again();
    torch::autograd::current = torch::autograd::Held(nullptr);
  });
  engine.join();
  graph.clear();
}
}
