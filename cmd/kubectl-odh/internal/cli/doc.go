// Package cli is what the sub-commands have in common: flags, the way to the cluster, output for people and for programs, and
// exit codes.
//
// Everything outside the program is in [Process], so that tests can be the world. A command is a [Command]; what it does is an
// [Action], which gets a [Call]. It prints to Call.Stdout, as text or with [Call.Encode], and returns nil when all is well,
// [ErrWrong] when what it has shown is not, [ErrUnknown] when it could not read everything, a [Usage] error when it was called
// wrongly, and any other error when it could not find out.
package cli
