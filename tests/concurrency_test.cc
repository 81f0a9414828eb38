// Sessions of one model in several threads at once.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "models/particle_net.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

constexpr int kThreads = 4;

class ConcurrencyTest : public BackendTest {
 protected:
  ConcurrencyTest() {
    for (const char* sizes : {"N=1,n_pf=50,n_sv=5", "N=7,n_pf=33,n_sv=3", "N=1,n_pf=17,n_sv=0",
                              "N=1,n_pf=128,n_sv=16"}) {
      cases_.push_back(ReadCase("particle_net_test", sizes, particle_net::Info()));
    }
  }

  // Calls `action(thread)` in all threads at once. Exceptions are failures of the test.
  template <class Action>
  static void InThreads(const Action& action) {
    std::atomic<int> waiting = kThreads;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        EXPECT_NO_THROW(action(i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<ModelCase> cases_;
};

TEST_P(ConcurrencyTest, SessionsInThreads) {
  InThreads([&](int thread) {
    particle_net::Session session(device());
    for (int round = 0; round < 6; ++round) {
      ExpectRuns(session.core(), cases_[(thread + round) % cases_.size()]);
    }
  });
}

// Weights are shared by the sessions there are, and loaded anew when the last is gone.
TEST_P(ConcurrencyTest, SessionsComeAndGo) {
  InThreads([&](int thread) {
    for (int round = 0; round < 4; ++round) {
      particle_net::Session session(device());
      ExpectRuns(session.core(), cases_[thread % cases_.size()]);
    }
  });
}

// A session is not bound to the thread that made it.
TEST_P(ConcurrencyTest, SessionsMadeElsewhere) {
  std::vector<std::unique_ptr<SessionCore>> sessions;
  for (int i = 0; i < kThreads; ++i) sessions.push_back(particle_net::NewSession(device()));
  for (int shift = 0; shift < 2; ++shift) {
    InThreads([&](int thread) {
      ExpectRuns(*sessions[(thread + shift) % kThreads], cases_[thread % cases_.size()]);
    });
  }
}

TEST_P(ConcurrencyTest, WeightsAreShared) {
  particle_net::Session first(device());
  const int64_t before = Allocations().live_bytes;
  particle_net::Session second(device());
  EXPECT_EQ(Allocations().live_bytes, before);
  ExpectRuns(second.core(), cases_[0]);
  ExpectRuns(first.core(), cases_[1]);
}

INSTANTIATE_TEST_SUITE_P(, ConcurrencyTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
