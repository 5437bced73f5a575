"""A writer killed again and again, at moments drawn over the whole of a write."""

import textwrap

import children

# One process imports everything and forks: the child writes version after version until it is
# killed, its parent looks at what is there. `prepare` defines `write(version)` and `is_whole()`.
DRIVER = """
import os, random, signal, sys, time
path, times = sys.argv[1], int(sys.argv[2])
{prepare}
write(0)  # whatever is imported on the way is imported here
took = []
for version in (1, 0, 1, 0, 1):
    begun = time.perf_counter()
    write(version)
    took.append(time.perf_counter() - begun)
whole_write = sorted(took)[2]
chance = random.Random(0)
torn = 0
for _ in range(times):
    child = os.fork()
    if child == 0:
        version = 0
        while True:
            write(version % 2)
            version += 1
    time.sleep(chance.uniform(0, 1.5 * whole_write))  # into the first write, or the second
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    torn += not is_whole()
print("TORN", torn)
"""


def torn_files(prepare, path, times):
    """How often the file was neither the old one nor the new one after SIGKILL."""
    code = DRIVER.format(prepare=textwrap.dedent(prepare))
    done = children.run(["-c", path, times], code=code, timeout=60 + times)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split("TORN")[1])
