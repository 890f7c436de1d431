"""What `pio run` and `pio run -t exec` do: a program of this machine."""

from SCons.Script import AlwaysBuild, Default, DefaultEnvironment

env = DefaultEnvironment()
env.Replace(PROGNAME="program")
program = env.BuildProgram()
run = env.VerboseAction("$BUILD_DIR/$PROGNAME", "running")
AlwaysBuild(env.Alias("exec", program, run))
Default([program])
