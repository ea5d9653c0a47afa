// Package cli is what the sub-commands have in common: flags, the way to the cluster, output for people and for programs, and
// exit codes.
//
// Everything outside the program is in [Options], so that tests can replace it. A command is a [Command], made of cobra; it gathers a
// [View], which [Options.Show] prints, and ends with nil when all is well, [ErrWrong] when what it has shown is not, [ErrUnknown] when it
// could not read everything, and any other error when it was called wrongly or could not find out.
package cli
