"""The DLPack protocol with stub producers: versions, streams, devices, ownership. Needs no GPU."""

import importlib.util
import shutil
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest
from described import integers, run
from dlpack_stub import BFLOAT, CPU, CUDA, CUDA_HOST, FLOAT, MANAGED, Old, Producer, host
from fastgemm import _core
from native import ROOT, need

describe = _core._describe_call


def test_declarations_are_those_of_the_real_header():
    spec = importlib.util.find_spec("tvm_ffi")
    need(spec, "no apache-tvm-ffi, which ships dlpack.h: install '.[test]'")
    compiler = shutil.which("g++") or shutil.which("c++")
    need(compiler, "no C++ compiler")
    header = next(Path(spec.submodule_search_locations[0]).rglob("include/dlpack/dlpack.h"))
    includes = [f"-I{ROOT / 'python'}", f"-I{header.parents[1]}"]
    source = ROOT / "tests/cpp/dlpack_check.cpp"
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Werror", *includes, source]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_cuda_producers_get_the_stream_and_the_version():
    a, b, out = Producer(), Producer(), Producer()
    describe(a, b, out=out, stream=0x7F00)
    for producer in (a, b, out):
        assert producer.calls == [{"stream": 0x7F00, "max_version": (1, 1)}]


def test_the_legacy_default_stream_is_1_and_never_0():
    for stream in (None, 0):
        a = Producer()
        call = describe(a, Producer(), stream=stream)
        assert a.calls == [{"stream": 1, "max_version": (1, 1)}]
        assert call["stream"] == 0


@pytest.mark.parametrize("device", [CPU, CUDA_HOST])
def test_host_producers_get_no_stream(device):
    x = integers((2, 2))
    a = host(x, device=(device, 0))
    describe(a, x)
    assert a.calls == [{"max_version": (1, 1)}]


@pytest.mark.parametrize(
    ("attributes", "handle"),
    [
        ({"cuda_stream": 17}, 17),
        ({"ptr": 18}, 18),
        ({"__cuda_stream__": lambda: (0, 19)}, 19),
    ],
)
def test_streams_are_handles_or_objects_of_any_framework(attributes, handle):
    call = describe(Producer(), Producer(), stream=types.SimpleNamespace(**attributes))
    assert call["stream"] == handle


@pytest.mark.parametrize("stream", ["5", 1.0, True, object()])
def test_other_objects_are_no_streams(stream):
    with pytest.raises(TypeError, match="stream is a"):
        describe(Producer(), Producer(), stream=stream)


def test_negative_handles_are_no_streams():
    with pytest.raises(ValueError, match="stream is -1"):
        describe(Producer(), Producer(), stream=-1)


def test_producers_without_max_version_are_asked_again():
    a = Old(device=(CUDA, 3))
    describe(a, Old(device=(CUDA, 3)), stream=9)
    assert a.calls == [{"stream": 9}]
    assert a.deleted == 1


def test_a_type_error_about_the_array_is_not_hidden():
    class Broken(Producer):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            raise TypeError("cannot export an array of bananas")

    a = Broken()
    with pytest.raises(TypeError, match="bananas"):
        describe(a, Producer())
    assert len(a.calls) == 1


def test_other_exceptions_are_not_hidden():
    class Broken(Producer):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            raise BufferError("locked")

    a = Broken()
    with pytest.raises(BufferError, match="locked"):
        describe(a, Producer())
    assert len(a.calls) == 1


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (1, 7)])
def test_both_capsule_names_are_taken_once(version):
    x = integers((2, 3))
    a = host(x, version=version)
    out = np.empty((2, 2), np.float16)
    run(a, x.T, out=out)
    np.testing.assert_array_equal(out, x @ x.T)
    assert a.deleted == 1
    assert '"used_dltensor' in repr(a.capsule)


def test_a_later_major_version_is_refused_and_given_back():
    a = Producer(version=(2, 0))
    with pytest.raises(TypeError, match=r"a \(.*Producer\) was exported as DLPack 2.0"):
        describe(a, Producer())
    assert a.deleted == 1


def test_a_used_capsule_is_refused():
    x = integers((2, 2))
    a = host(x)
    describe(a, x)
    a.export = lambda: a.capsule
    with pytest.raises(TypeError, match="not an unused DLPack capsule"):
        describe(a, x)
    assert a.deleted == 1


def test_something_else_than_a_capsule_is_refused():
    a = Producer()
    a.export = lambda: 5
    with pytest.raises(TypeError, match="returned a int, not an unused DLPack capsule"):
        describe(a, Producer())


@pytest.mark.parametrize(
    "dtype",
    [(77, 16, 1), (FLOAT, 16, 2), (FLOAT, 12, 1), (BFLOAT, 32, 1), (0, 16, 1), (FLOAT, 64, 1)],
)
def test_dtypes_are_matched_on_code_bits_and_lanes(dtype):
    a = Producer(dtype=dtype)
    with pytest.raises(TypeError, match="has dtype .*supported are a and b of float16 or bfloat16"):
        describe(a, Producer())
    assert a.deleted == 1


def test_bfloat16_is_read():
    call = describe(Producer(dtype=(BFLOAT, 16, 1)), Producer(dtype=(BFLOAT, 16, 1)))
    assert call["out_dtype"] == "bfloat16"


@pytest.mark.parametrize("device", [4, 7, 8, 10, 14, 15])
def test_other_devices_are_refused(device):
    with pytest.raises(TypeError, match=f"DLPack device type {device}; supported are the host"):
        describe(Producer(device=(device, 0)), Producer())


def test_a_device_that_changes_on_export_is_refused():
    with pytest.raises(ValueError, match="announced memory on cuda:0 and exported it on cuda:1"):
        describe(Producer(exported_device=(CUDA, 1)), Producer())


def test_managed_memory_is_on_any_gpu():
    managed = Producer(device=(MANAGED, 0))
    assert describe(managed, Producer(device=(CUDA, 2)))["waits"]
    assert describe(Producer(device=(CUDA, 2)), managed)["device"] == "cuda:2"
    with pytest.raises(ValueError, match="operands in different places"):
        describe(managed, integers((2, 2)))


def test_missing_strides_mean_packed():
    problem = describe(Producer((4, 6)), Producer((6, 2)))["problems"][0]
    assert problem["a"]["strides"] == (0, 6, 1)
    assert problem["b"]["strides"] == (0, 2, 1)


def test_byte_offset_and_negative_strides_are_read():
    x = integers((4, 6))
    a = host(x, byte_offset=x.itemsize * 5)
    a.strides = [6, -1]
    out = np.empty((4, 2), np.float16)
    run(a, np.ones((6, 2), np.float16), out=out)
    np.testing.assert_array_equal(out, x[:, ::-1] @ np.ones((6, 2), np.float16))


def test_a_misaligned_address_is_refused():
    with pytest.raises(ValueError, match="not a multiple of its item size of 2 bytes"):
        describe(Producer(byte_offset=1), Producer())


def test_empty_arrays_may_have_any_address_and_strides():
    a = Producer((0, 5), data=None, strides=(-7, 3))
    call = describe(a, Producer((5, 2)))
    assert call["shape"] == (0, 2)
    assert call["problems"] == []


def test_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match="a has 65 dimensions; at most 64"):
        describe(Producer((1,) * 65), Producer())


def test_the_read_only_flag_is_heeded_for_out_alone():
    describe(Producer(flags=1), Producer(flags=1))
    out = Producer(flags=1)
    with pytest.raises(ValueError, match="out is read-only"):
        describe(Producer(), Producer(), out=out)
    assert out.deleted == 1


def test_memory_without_a_read_only_flag_counts_as_writable():
    out = Old()
    describe(Producer(), Producer(), out=out)
    assert out.deleted == 1


def test_devices_are_compared_before_anything_is_exported():
    operands = a, b, out = Producer(), Producer(device=(CUDA, 1)), Producer()
    with pytest.raises(ValueError, match=r"a \(.*\) on cuda:0, b \(.*\) on cuda:1, out \(.*\) on"):
        describe(a, b, out=out)
    assert not any(x.calls for x in operands)


def test_what_only_speaks_dlpack_is_waited_for_unless_the_caller_gives_the_stream():
    assert describe(Producer(), Producer())["waits"]
    assert not describe(Producer(), Producer(), stream=5)["waits"]


def test_all_are_given_back_when_a_later_operand_fails():
    a, b = Producer(), Producer(dtype=(77, 8, 1))
    with pytest.raises(TypeError):
        describe(a, b)
    assert (a.deleted, b.deleted) == (1, 1)
