//go:build !linux

package cluster

import (
	"errors"
	"os/exec"
)

func (p *Process) startIn(command *exec.Cmd) error {
	if p.Isolated || p.Network != 0 {
		return errors.New("Isolated and Network require Linux namespaces")
	}
	return command.Start()
}
