package main

import (
	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/doctor"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/status"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
)

// commands are the sub-commands in the order of the help.
func commands() []cli.Command {
	return []cli.Command{status.Command(), tree.Command(), render.Command(kinds.Table()), doctor.Command(), cli.Version()}
}
