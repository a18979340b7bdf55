"""What tests of several rooms share lies beside this file: `one_binding.py`."""
