/* SPDX-License-Identifier: Apache-2.0
 * A plugin for qemu's user mode that counts instructions. Whenever the program writes to standard output it
 * writes, before it, a line "counted ALL VECTOR" of what has run so far. Debian's qemu-user comes without the
 * header of its plugin interface: the few functions that are used are declared here (version 1). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct plugin_info {
  const char* target_name; /* "aarch64", "x86_64"; more follows */
};
typedef void (*translated_fn)(plugin_id, struct qemu_plugin_tb*);
typedef void (*syscall_fn)(plugin_id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t, uint64_t);
enum { kAdd = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, translated_fn);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id, syscall_fn);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int, void*, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);

EXPORT int qemu_plugin_version = 1;

static int is_arm, write_number;
static uint64_t all, vector;

/* ARM: the two groups of instructions on vector registers, and loads and stores of those. x86: the prefixes
 * of AVX, which all instructions on vectors have in the kernels that are counted. */
static int on_vectors(const void* code) {
  if (is_arm) {
    uint32_t word;
    memcpy(&word, code, sizeof word);
    const uint32_t group = word >> 25 & 0xf;
    return group == 7 || group == 15 || ((group & 5) == 4 && (word >> 26 & 1) != 0);
  }
  const uint8_t first = *(const uint8_t*)code;
  return first == 0xc4 || first == 0xc5;
}

static void on_translated(plugin_id id, struct qemu_plugin_tb* block) {
  (void)id;
  const size_t count = qemu_plugin_tb_n_insns(block);
  uint64_t of_vectors = 0;
  for (size_t i = 0; i < count; ++i)
    of_vectors += (uint64_t)on_vectors(qemu_plugin_insn_data(qemu_plugin_tb_get_insn(block, i)));
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &all, count);
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &vector, of_vectors);
}

static void on_syscall(plugin_id id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)cpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (number != write_number || a1 != STDOUT_FILENO) return;
  char line[80];
  const int size =
      snprintf(line, sizeof line, "counted %llu %llu\n", (unsigned long long)all, (unsigned long long)vector);
  if (write(STDOUT_FILENO, line, (size_t)size) != size) _exit(1);
}

EXPORT int qemu_plugin_install(plugin_id id, const struct plugin_info* info, int count, char** arguments) {
  (void)count, (void)arguments;
  is_arm = strcmp(info->target_name, "aarch64") == 0;
  write_number = is_arm ? 64 : 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
  return 0;
}
