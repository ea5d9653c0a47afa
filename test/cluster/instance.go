package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/test/node"
)

const (
	defaultNodes = 2
	startTimeout = 4 * time.Minute
)

// ErrInUse is returned when the owner of the instance of that name, or without an owner its API server, is running.
var ErrInUse = errors.New("instance is in use")

// ErrNotFound is returned when no instance of that name exists.
var ErrNotFound = errors.New("no such instance")

// Options of [Start].
type Options struct {
	// Name of the instance: 1 to 40 lower-case letters, digits and inner dashes.
	Name string
	// Platform whose APIs are served; empty means [Plain].
	Platform Platform
	// Sets of CRDs that are served in addition to those of the platform.
	Sets []Set
	// CRDs that are served in addition to the sets, from the start of the instance.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Nodes is the number of fake nodes; 0 means 2.
	Nodes int
	// Real runs pods on one real node in place of the fake nodes, see package node. It requires root on Linux.
	Real bool
	// Ports is the number of ports on 127.0.0.1 for programs that the caller starts as processes of the instance, see
	// [Instance.Ports]. These programs are in the network of a real node, and clients on the machine reach them at the ports.
	Ports int
	// Memory is the soft memory limit of each program of the control plane, in the format of GOMEMLIMIT; empty
	// means 1GiB, or half more for an ephemeral API server, which is enough for some thousand objects.
	Memory string
	// Ephemeral ties the instance to the calling process: after the process has exited, the next start of any instance by this user
	// removes the instance. Other instances run until they are stopped.
	Ephemeral bool
	// Published prefers programs of the user or of the releases of their projects, except with Real. Otherwise all programs are
	// compiled, in the versions that the tests require.
	Published bool
	// Progress receives one line per step; nil means none.
	Progress io.Writer
}

// Instance is a control plane that was started. It is safe for concurrent use.
type Instance struct {
	// Name of the instance.
	Name string

	dir   string
	clock clock.WithTicker
	mutex sync.Mutex
	state state
	// programs, options and begin are set only in the process that has started the instance.
	programs *supply
	options  Options
	begin    time.Time
}

// Start builds missing programs, starts an instance and returns when it is ready: the API server, the controllers, the scheduler,
// every node, and the APIs of the platform. An instance of the same name is removed first if its owner, or without an owner its API
// server, has exited; otherwise Start returns [ErrInUse]. After another error, no process of the instance is running. If a process did not
// become ready, the error contains the end of its log.
func Start(ctx context.Context, options Options) (*Instance, error) {
	i, err := StartAPI(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := i.finishBuilt(ctx); err != nil {
		return nil, errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
	}
	return i, nil
}

// finishBuilt calls [Instance.Finish] when all programs are built.
func (i *Instance) finishBuilt(ctx context.Context) error {
	if _, err := i.programs.all(ctx); err != nil {
		return err
	}
	return i.Finish(ctx)
}

// lockedWriter is a writer that is safe for concurrent use.
type lockedWriter struct {
	mutex sync.Mutex
	to    io.Writer
}

func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.to.Write(text)
}

// StartAPI is like [Start], but returns when the API server serves the APIs of the platform. The other programs may not be built yet;
// [Instance.Finish] starts them.
func StartAPI(ctx context.Context, options Options) (*Instance, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	options.Progress = &lockedWriter{to: options.Progress}
	if options.Platform == "" {
		options.Platform = Plain
	}
	if options.Nodes == 0 && !options.Real {
		options.Nodes = defaultNodes
	}
	if err := options.Platform.validate(); err != nil {
		return nil, err
	}
	if options.Nodes < 0 || options.Real && options.Nodes > 1 {
		return nil, fmt.Errorf("starting instance %s: %d nodes are not supported", options.Name, options.Nodes)
	}
	programs, err := options.build(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{Etcd, APIServer} {
		if _, err := programs.path(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := removeUnused(ctx, options.Name); err != nil {
		return nil, err
	}
	i, err := reserve(ctx, options)
	if err != nil {
		return nil, err
	}
	i.programs, i.options, i.begin = programs, options, i.clock.Now()
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := i.startAPI(startCtx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting instance %s: %w", i.Name, err), i.Stop(context.WithoutCancel(ctx)))
	}
	return i, nil
}

// Finish starts the controllers, the scheduler and, without a real node, kwok in an instance of [StartAPI], each as soon as it is built.
// It returns when the instance is ready.
func (i *Instance) Finish(ctx context.Context) error {
	if !i.options.Ephemeral {
		if err := i.removeOwner(); err != nil {
			return err
		}
	}
	for _, p := range []*Process{i.controllerManager(), i.scheduler(), i.kwok()} {
		if p.Name == Kwok && i.state.Real {
			continue
		}
		if err := i.run(ctx, p); err != nil {
			return fmt.Errorf("starting instance %s: %w", i.Name, err)
		}
	}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := i.waitReady(startCtx); err != nil {
		return fmt.Errorf("starting instance %s: %w", i.Name, err)
	}
	i.logf("instance %s ready, %s", i.Name, i.options.describe())
	return nil
}

// Program waits until a program of an instance that this process has started is built, and returns its path.
func (i *Instance) Program(ctx context.Context, name string) (string, error) {
	if i.programs == nil {
		return "", fmt.Errorf("program %s: another process has started instance %s", name, i.Name)
	}
	return i.programs.path(ctx, name)
}

func (i *Instance) logf(format string, args ...any) {
	fmt.Fprintf(i.options.Progress, "[%5s] %s\n", i.clock.Since(i.begin).Round(100*time.Millisecond), fmt.Sprintf(format, args...))
}

// removeOwner removes the owner of the instance, so the instance outlives the program that has started it.
func (i *Instance) removeOwner() error {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.state.Owner = nil
	return i.state.write(i.dir)
}

// reserve reserves the name and the ports of an instance under a lock of this user.
func reserve(ctx context.Context, options Options) (*Instance, error) {
	dir, err := instanceDir(options.Name)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, "instances", nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	states, err := allStates(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of instances: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("starting instance %s: %w", options.Name, ErrInUse)
	} else if err != nil {
		return nil, fmt.Errorf("creating the folder of instance %s: %w", options.Name, err)
	}
	ports, err := freePorts(portCount+options.Ports, rand.IntN(lastPort-firstPort), reservedPorts(states), isFree)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	i := &Instance{Name: options.Name, dir: dir, clock: clock.RealClock{}}
	i.state = state{
		Name: options.Name, Platform: options.Platform, Ports: ports, Real: options.Real, Memory: options.Memory,
		Owner: &Process{Name: "owner", PID: os.Getpid(), Start: start},
	}
	return i, i.state.write(dir)
}

// removeUnused removes unused instances: those whose owner has exited, and an instance of the given name if it has no owner and its API
// server has exited. The lock protects instances that other processes are about to reserve.
func removeUnused(ctx context.Context, name string) error {
	unlock, err := lock(ctx, "instances", nil)
	if err != nil {
		return err
	}
	defer unlock()
	instances, err := List()
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range instances {
		orphaned := i.state.Owner != nil && !i.state.Owner.Running()
		exited := i.Name == name && i.state.Owner == nil && !i.Running()
		if orphaned || exited {
			errs = append(errs, i.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// Open returns an existing instance, or [ErrNotFound]. If the start of the instance was interrupted, it may have only a name; it can be
// stopped.
func Open(name string) (*Instance, error) {
	dir, err := instanceDir(name)
	if err != nil {
		return nil, err
	}
	s, err := readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat(dir); statErr != nil {
			return nil, fmt.Errorf("instance %s: %w", name, ErrNotFound)
		}
		s, err = state{Name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Instance{Name: name, dir: dir, state: s, clock: clock.RealClock{}}, nil
}

// List returns all instances of this user, by name.
func List() ([]*Instance, error) {
	dir, err := instancesDir()
	if err != nil {
		return nil, err
	}
	states, err := allStates(dir)
	if err != nil {
		return nil, err
	}
	var instances []*Instance
	for _, s := range states {
		instances = append(instances, &Instance{Name: s.Name, dir: filepath.Join(dir, s.Name), state: s, clock: clock.RealClock{}})
	}
	return instances, nil
}

// Stop stops every recorded process, the latest first, and removes the folder of the instance.
func (i *Instance) Stop(ctx context.Context) error {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if s, err := readState(i.dir); err == nil {
		i.mergeProcesses(s)
	}
	var errs []error
	for _, p := range slices.Backward(i.state.Processes) {
		if slices.Contains([]string{Etcd, Kwok, APIServer, RealNode}, p.Name) {
			errs = append(errs, p.Kill(ctx)) // their data is deleted, so a graceful exit only costs time
			continue
		}
		errs = append(errs, p.Stop(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping instance %s: %w", i.Name, err)
	}
	if err := node.Remove(ctx, i.dir); err != nil {
		return fmt.Errorf("removing the node of instance %s: %w", i.Name, err)
	}
	if err := os.RemoveAll(i.dir); err != nil {
		return fmt.Errorf("removing instance %s: %w", i.Name, err)
	}
	return nil
}

// mergeProcesses adds the processes that another program has recorded, and keeps the handles of the processes of this program.
func (i *Instance) mergeProcesses(s state) {
	for _, p := range s.Processes {
		known := i.state.process(p.Name)
		if known == nil || known.PID != p.PID {
			i.state.record(p)
		}
	}
}

// Running reports whether the API server of the instance is running.
func (i *Instance) Running() bool {
	p := i.Process(APIServer)
	return p != nil && p.Running()
}

// Platform returns the platform of the instance.
func (i *Instance) Platform() Platform { return i.state.Platform }

// Dir returns the folder of the instance, which is removed when the instance is stopped.
func (i *Instance) Dir() string { return i.dir }

// URL returns the address of the API server.
func (i *Instance) URL() string { return "https://" + loopback(i.state.Ports[apiPort]) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (i *Instance) Kubeconfig() string { return i.file("kubeconfig") }

// Ports returns the ports of [Options.Ports], followed by those of [Instance.ReservePorts].
func (i *Instance) Ports() []int {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Clone(i.state.Ports[portCount:])
}

// AuditLog returns the path of the API server's audit log, with one JSON document per line.
func (i *Instance) AuditLog() string { return i.file("audit.log") }
