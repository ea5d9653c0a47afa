# What a user of the SDK does from another namespace: runs a task through the Ray client at the address that is the argument.
import sys

import ray

ray.init(f"ray://{sys.argv[1]}", logging_level="ERROR", log_to_driver=False)
print(ray.get(ray.remote(lambda: 6 * 7).remote(), timeout=60))
