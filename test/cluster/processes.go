package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// ReservePorts reserves free loopback ports for an additional program of this instance, until the instance is stopped.
func (i *Instance) ReservePorts(ctx context.Context, count int) ([]int, error) {
	unlock, err := lock(ctx, "instances", nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	states, err := allStates(filepath.Dir(i.dir))
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(count, rand.IntN(lastPort-firstPort), reservedPorts(states), isFree)
	if err != nil {
		return nil, err
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.state.Ports = append(i.state.Ports, ports...)
	return ports, i.state.write(i.dir)
}

// StartProcess starts an additional program as a process of the instance, such as the manager; [Instance.Stop] also stops it. Its
// environment consists of HOME, PATH and a few other variables of the caller, and env. StartProcess returns an error if a process of that
// name is running; it replaces an exited one and appends to its log, <dir>/<name>.log.
func (i *Instance) StartProcess(name, path string, args, env []string) (*Process, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if old := i.state.process(name); old != nil && old.Running() {
		return nil, fmt.Errorf("starting %s: it is already running, pid %d", name, old.PID)
	}
	p := &Process{Name: name, Path: path, Args: args, Env: env, Log: i.file(name + ".log")}
	return p, i.launch(p)
}

func (i *Instance) launch(p *Process) error {
	if n := i.state.process(RealNode); n != nil && p.Name != RealNode {
		p.Network = n.PID
	}
	if err := p.launch(); err != nil {
		return err
	}
	i.state.record(p)
	return i.state.write(i.dir)
}

// relaunch starts an exited process with the same parameters.
func (i *Instance) relaunch(old *Process) error {
	return i.launch(&Process{
		Name: old.Name, Path: old.Path, Args: old.Args, Env: old.Env, Log: old.Log, Port: old.Port, Isolated: old.Isolated,
	})
}

// Process returns the recorded process of that name, or nil.
func (i *Instance) Process(name string) *Process {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.state.process(name)
}

// Processes returns all recorded processes in the order of their start.
func (i *Instance) Processes() []*Process {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Clone(i.state.Processes)
}

// Halt stops a process of the instance until [Instance.Resume], for example [APIServer] to simulate an outage.
func (i *Instance) Halt(ctx context.Context, name string) error {
	p := i.Process(name)
	if p == nil {
		return fmt.Errorf("halting %s: instance %s has no such process", name, i.Name)
	}
	return p.Stop(ctx)
}

// Resume starts a halted process again with the same arguments and waits until the control plane is ready. It ignores a running process.
func (i *Instance) Resume(ctx context.Context, name string) error {
	i.mutex.Lock()
	old := i.state.process(name)
	if old == nil {
		i.mutex.Unlock()
		return fmt.Errorf("resuming %s: instance %s has no such process", name, i.Name)
	}
	if old.Running() {
		i.mutex.Unlock()
		return nil
	}
	err := i.relaunch(old)
	i.mutex.Unlock()
	if err != nil {
		return err
	}
	return i.waitReady(ctx)
}
