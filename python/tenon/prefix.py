"""Where the parts for C++ are: a wheel has headers, library and CMake package next to the extension module."""

import os

from . import _C

_folder = os.path.dirname(os.path.abspath(_C.__file__))


def cmake_prefix_path() -> str:
    """The folder for CMAKE_PREFIX_PATH, with which CMake's find_package(Tenon) finds this Tenon.

    Raises RuntimeError where Tenon runs from its build tree, which has nothing to build against.
    """
    if not os.path.isdir(os.path.join(_folder, "include", "tenon")):
        raise RuntimeError(
            f"cmake_prefix_path: this Tenon runs from its build tree, {_folder}, which has no headers to build against; "
            "install it with pip, or run cmake --install on the tree and give CMake that prefix"
        )
    return _folder


def get_include() -> str:
    """The folder of Tenon's headers: a compiler's -I. Raises RuntimeError where cmake_prefix_path does."""
    return os.path.join(cmake_prefix_path(), "include")
