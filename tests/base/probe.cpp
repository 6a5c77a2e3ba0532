// SPDX-License-Identifier: Apache-2.0
// Starts the probe through fork and exec, its output in a pipe.
#include "probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace retrograd::test {
namespace {

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "RETROGRAD_", 10) != 0) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : variables) entries.push_back(std::string(name).append("=").append(value));
  return entries;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

ProbeResult run_probe(const std::string& mode, const std::map<std::string, std::string>& variables) {
  // Everything is allocated before the fork: between it and exec only system calls are safe.
  std::vector<std::string> entries = environment_with(variables);
  std::vector<char*> environment;
  environment.reserve(entries.size() + 1);
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  std::string program = ENVIRONMENT_PROBE, argument = mode;
  char* arguments[] = {program.data(), argument.data(), nullptr};

  int ends[2];
  if (pipe(ends) != 0) return {-1, {}};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execve(program.c_str(), arguments, environment.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;) text.append(chunk, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return {-1, split_lines(text)};
  return {WEXITSTATUS(status), split_lines(text)};
}

}  // namespace retrograd::test
