CPP := $(shell find . -name '*.cpp')
C := $(shell find . -name '*.c')
program: $(CPP:.cpp=.o) $(C:.c=.oc)
	g++ -o $@ $^ -lpthread
%.o: %.cpp
	g++ -std=gnu++20 -fno-exceptions -O0 -DUSE_HOST {log} -I. -c $< -o $@
%.oc: %.c
	gcc -O1 -I. -c $< -o $@
