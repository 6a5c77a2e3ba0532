// SPDX-License-Identifier: Apache-2.0
// The pipes to a peer and the lines that go through them.
#include "tools/bench/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

extern char** environ;

namespace retrograd::tools {
namespace {

using Seconds = std::chrono::seconds;
using std::chrono::steady_clock;

// Loading a framework takes seconds, and a peer's slowest call may take as long as its reference loops need.
constexpr Seconds kPatience{120};

std::string after_word(const std::string& line, const char* word) {
  const size_t length = std::strlen(word);
  return line.size() > length ? line.substr(length + 1) : "";
}

bool is_word(const std::string& line, const char* word) {
  const size_t length = std::strlen(word);
  return line.compare(0, length, word) == 0 && (line.size() == length || line[length] == ' ');
}

}  // namespace

Result<std::unique_ptr<Peer>> Peer::start(const std::string& command, int threads) {
  const std::string line = fmt::format("{} --threads {}", command, threads);
  std::array<int, 2> to{}, from{};
  if (pipe2(to.data(), O_CLOEXEC) != 0 || pipe2(from.data(), O_CLOEXEC) != 0)
    return Status(Code::kInternal, fmt::format("no pipe to '{}': {}", command, std::strerror(errno)));
  signal(SIGPIPE, SIG_IGN);  // a peer that is gone is noticed when it does not answer
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  // A group of its own, so that a peer that hangs can be ended with all it has started.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string shell = "sh", option = "-c", text = line;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  std::unique_ptr<Peer> peer(new Peer);
  const int error = posix_spawn(&peer->process_, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(to[0]);
  close(from[1]);
  peer->to_ = to[1];
  peer->from_ = from[0];
  if (error != 0) {
    peer->process_ = -1;
    return Status(Code::kInternal, fmt::format("'{}' does not start: {}", command, std::strerror(error)));
  }
  const auto answer = peer->read_line(kPatience);
  if (!answer) return Status(Code::kInternal, fmt::format("'{}' does not start: {}", command, peer->lost_));
  std::istringstream words(*answer);
  std::string ready;
  words >> ready >> peer->name_;
  if (ready != "ready" || peer->name_.empty())
    return Status(Code::kInternal,
                  fmt::format("'{}' answers '{}', expected ready NAME VERSION", command, *answer));
  std::getline(words >> std::ws, peer->version_);
  return peer;
}

Peer::~Peer() {
  if (process_ > 0) {
    kill(-process_, SIGCONT);
    if (!lost()) {
      const ssize_t written = write(to_, "quit\n", 5);
      static_cast<void>(written);  // gone already is as good
    } else {
      kill(-process_, SIGTERM);
    }
  }
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

void Peer::lose(std::string why) { lost_ = std::move(why); }

std::optional<std::string> Peer::read_line(Seconds patience) {
  const auto deadline = steady_clock::now() + patience;
  while (true) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd wait{from_, POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      lose(fmt::format("no answer in {} s", patience.count()));
      return std::nullopt;
    }
    char buffer[4096];
    const ssize_t count = read(from_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      lose("it has ended");
      return std::nullopt;
    }
    unread_.append(buffer, static_cast<size_t>(count));
  }
}

std::optional<std::string> Peer::ask(const std::string& line, Seconds patience) {
  if (lost()) return std::nullopt;
  kill(-process_, SIGCONT);
  const std::string with_end = line + "\n";
  for (size_t sent = 0; sent < with_end.size();) {
    const ssize_t count = write(to_, with_end.data() + sent, with_end.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      lose("it has ended");
      return std::nullopt;
    }
    sent += static_cast<size_t>(count);
  }
  auto answer = read_line(patience);
  kill(-process_, SIGSTOP);
  return answer;
}

std::optional<std::string> Peer::declines(const std::string& problem) {
  const auto answer = ask("problem " + problem, kPatience);
  if (!answer) return lost_;
  if (is_word(*answer, "ok")) return std::nullopt;
  if (is_word(*answer, "no")) return after_word(*answer, "no");
  lose(fmt::format("'{}' is no answer to a problem", *answer));
  return lost_;
}

std::optional<PeerTime> Peer::time(double wanted) {
  const auto answer = ask(fmt::format("time {}", wanted), kPatience + Seconds(static_cast<int64_t>(wanted)));
  if (!answer) return std::nullopt;
  std::istringstream words(*answer);
  std::string ns;
  PeerTime result;
  words >> ns >> result.seconds >> result.runs;
  if (ns != "ns" || words.fail() || !(result.seconds > 0)) {
    lose(fmt::format("'{}' is no answer to a time", *answer));
    return std::nullopt;
  }
  result.seconds *= 1e-9;
  words >> result.variant;
  return result;
}

}  // namespace retrograd::tools
