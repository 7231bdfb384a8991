# For the other scripts here, sourced: who has its turn on the GPU. Jobs are started with ANYFILL_TURN_OF=NAME in their
# environment; what they start has it, too.
#
#   rest NAME     stop all that has the name (a part of it will do), wherever it computes
#   wake NAME     let it go on
_signal() { # SIGNAL NAME
  local one
  for one in /proc/[0-9]*; do
    if grep -qsz "^ANYFILL_TURN_OF=.*$2" "$one/environ"; then kill "-$1" "${one#/proc/}" 2> /dev/null; fi
  done
  return 0
}
rest() { _signal STOP "$1"; }
wake() { _signal CONT "$1"; }
