"""The C++ unit tests, so that one pytest command runs every test."""

from native import run


def test_cpp_unit_tests_pass(cpp_build):
    output = run("ctest", "--test-dir", cpp_build, "--output-on-failure", "--no-tests=error")
    print(output)
