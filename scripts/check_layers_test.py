"""Every rule of check_layers.py rejects a tree that breaks it, and the table is a partial order."""

import tempfile
import unittest
from pathlib import Path

import check_layers


class CheckLayersTest(unittest.TestCase):
    def check(self, files):
        """The violations of a tree that holds a clean core and `files` (path -> text)."""
        clean = {
            "src/base/error.h": "#pragma once\n",
            "src/base/CMakeLists.txt": "funcpipe_module(base SOURCES error.cc)\n",
            "src/core/job.cc": '#include "base/error.h"\n#include "core/job.h"\n#include <vector>\n',
            "src/core/CMakeLists.txt": "funcpipe_module(core SOURCES job.cc DEPS base LIBS torch)\n",
        }
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**clean, **files}.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_layers.check(Path(root))

    def assert_rejected(self, name, text, *expected):
        found = self.check({name: text})
        self.assertEqual(len(found), 1, found)
        for part in (name, *expected):
            self.assertIn(part, found[0])

    def assert_clean(self, name, text):
        self.assertEqual(self.check({name: text}), [])

    def test_table_has_no_cycle(self):
        placed = set()
        for folder, others in check_layers.ALLOWED.items():
            self.assertLessEqual(others, placed, folder)
            placed.add(folder)

    def test_clean_tree(self):
        self.assertEqual(self.check({}), [])

    def test_include_upwards(self):
        self.assert_rejected("src/base/x.cc", '\n#include "core/job.h"\n', ":2:", "must not include src/core")
        self.assert_rejected("src/core/x.cc", '#include "store/object_store.h"\n', "must not include")
        self.assert_rejected("src/core/x_test.cc", '#include "store/object_store.h"\n', "must not include")

    def test_include_without_folder_or_of_unknown_folder(self):
        self.assert_rejected("src/core/x.cc", '#include "job.h"\n', "with its folder")
        self.assert_rejected("src/core/x.cc", '#include "util/x.h"\n', "not in the table")

    def test_unknown_folder(self):
        self.assertIn("src/util: a folder", self.check({"src/util/x.h": ""})[0])

    def test_libtorch(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "c10/util/Exception.h", "caffe2/core.h"):
            self.assert_rejected("src/core/x.cc", f"#include <{header}>\n", "libtorch")
            self.assert_rejected("src/nn/x.h", f"#include <{header}>\n", "libtorch")
            self.assert_clean("src/nn/x.cc", f"#include <{header}>\n")

    def test_curl_and_openssl(self):
        for header in ("curl/curl.h", "openssl/evp.h"):
            self.assert_rejected("src/store/x.cc", f"#include <{header}>\n", "src/net only")
            self.assert_clean("src/net/x.cc", f"#include <{header}>\n")

    def test_beast(self):
        beast = "#include <boost/beast/http.hpp>\n"
        self.assert_rejected("src/platform/x.cc", beast, "Boost.Beast")
        self.assert_clean("src/net/x.cc", beast)
        found = self.check({"src/net/x.cc": beast, "src/net/y.cc": beast})
        self.assertEqual(len(found), 1)
        self.assertIn("src/net/x.cc, src/net/y.cc", found[0])

    def test_environment(self):
        self.assert_rejected("src/core/x.cc", 'auto s = std::getenv("A");\n', "environment")
        self.assert_rejected("src/core/x.cc", 'auto u = "http://x"; auto s = secure_getenv("A");\n', "environment")
        self.assert_clean("src/core/x.cc", "// getenv(x)\n/* getenv(\n getenv( */ int my_getenv(int);\n")
        self.assert_clean("src/cli/x.cc", 'auto s = getenv("A");\n')
        for exception in check_layers.MAY_READ_ENVIRONMENT:
            self.assert_clean(exception, 'auto s = getenv("A");\n')

    def test_includes_in_comments_do_not_count(self):
        self.assert_clean("src/core/x.cc", '// #include "store/x.h"\n/*\n#include "store/x.h"\n*/\n')

    def test_long_file(self):
        self.assert_clean("src/core/x.cc", "\n" * check_layers.MAX_LINES)
        self.assert_rejected("src/core/x.cc", "\n" * (check_layers.MAX_LINES + 1), "lines")
        self.assert_rejected("tests/x.cc", "\n" * (check_layers.MAX_LINES + 1), "lines")

    def test_cmake(self):
        cmake = "src/core/CMakeLists.txt"
        self.assert_rejected(cmake, "funcpipe_module(core SOURCES job.cc\n  DEPS base store)\n", ":1:", "src/store")
        self.assert_rejected(cmake, "funcpipe_module(core SOURCES job.cc DEPS base util)\n", "util", "table")
        self.assert_rejected(cmake, "# x\nfuncpipe_module(core SOURCES job.cc)\n", ":2:", "does not name it")
        self.assert_rejected(cmake, "funcpipe_module(kore SOURCES job.cc DEPS base)\n", "kore")
        tests = "funcpipe_module(core DEPS base)\nfuncpipe_test(core SOURCES a_test.cc DEPS core {})\n"
        self.assert_clean(cmake, tests.format("base"))
        self.assert_rejected(cmake, tests.format("net"), ":2:", "src/net")


if __name__ == "__main__":
    unittest.main()
