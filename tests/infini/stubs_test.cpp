// SPDX-License-Identifier: Apache-2.0
// retrograd_add_stubs: a library built with it answers NOT_IMPLEMENTED for every listed name it
// lacks.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "infinicore.h"

namespace {

class InfiniopStubs : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(STUBS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override { dlclose(library_); }
  int call(const char* name) {
    void* symbol = dlsym(library_, name);
    EXPECT_NE(symbol, nullptr) << name;
    // Clients call stubs with the operator's own arguments.
    return symbol == nullptr ? -1 : reinterpret_cast<infiniStatus_t (*)(void*, size_t)>(symbol)(this, 7);
  }

 private:
  void* library_ = nullptr;
};

TEST_F(InfiniopStubs, AnswerNotImplementedForEveryListedName) {
  for (const char* name :
       {"infiniopCreateGemmDescriptor", "infiniopGemm", "_underscored2", "infiniopCreateScanDescriptor",
        "infiniopGetScanWorkspaceSize", "infiniopScan", "infiniopDestroyScanDescriptor", "infiniopLastLine"})
    EXPECT_EQ(call(name), INFINI_STATUS_NOT_IMPLEMENTED) << name;
}

TEST_F(InfiniopStubs, LeaveWhatIsImplementedAlone) {
  EXPECT_EQ(call("infiniopConvBackward"), INFINI_STATUS_SUCCESS);
}

TEST_F(InfiniopStubs, AreKnownToTheTargetForItsExportList) {
  EXPECT_STREQ(STUBS_NAMES,
               "infiniopCreateGemmDescriptor,infiniopGemm,_underscored2,infiniopCreateScanDescriptor,"
               "infiniopGetScanWorkspaceSize,infiniopScan,infiniopDestroyScanDescriptor,infiniopConvBackward,"
               "infiniopLastLine");
}

}  // namespace
