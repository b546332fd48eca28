#!/bin/sh
# Prints the agent's option, as the program on the hosts does where the jar is whole.
echo -javaagent:/opt/h/lib/hadoptic-agent.jar=out=/c
