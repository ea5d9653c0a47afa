// Command bench measures the manager against the targets of the project, and prints a table. It starts its own control plane and
// the stripped program with the shipped permissions. A missed target is not a failure: times depend on the machine. The exit code
// is 1 only if a measurement fails, or with -history if a ratio has become a fifth worse.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	servingv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const limit = 3 * time.Hour

type bench struct {
	instance *cluster.Instance
	admin    client.Client
	audit    *framework.Audit
	manager  *operator.Manager
	binary   string
	scratch  string
	clock    clock.Clock

	secrets int
	// workloads is the number of AppWrappers.
	workloads int
	// clusters is the number of RayClusters.
	clusters int
	// models is the number of Predictors.
	models  int
	network *modelmesh.Network
	window  time.Duration
	// list enables printing of each counted request.
	list    bool
	figures []figure
	// burst is the number of objects of a kind for the comparison with the bare client.
	burst int
	// bursts enables the comparison with the bare client instead of all other figures, and kinds limits it.
	bursts bool
	kinds  string
	// ratios are those that the history compares, by name.
	ratios map[string]float64
	// history is the file with previous ratios; empty for none.
	history string
	// profiles is the folder for profiles of bursts and of new processes; empty for none.
	profiles string
	// http reads the metrics of the manager.
	http *http.Client
	// leader enables the measurement of leader changes alone.
	leader bool
	// options of the manager.
	options operator.Options
	// sizes, if set, are the numbers of objects of each kind for which growth is measured instead of all other figures.
	sizes sizes
	curve []usage
	// leaking enables the rounds of creation and deletion before growth is measured.
	leaking bool
}

// figure is a row of the table; target and originals may be empty.
type figure struct{ name, value, target, originals string }

func (b *bench) note(name, value, target, originals string) {
	b.figures = append(b.figures, figure{name, value, target, originals})
}

// noteRatio adds a ratio of which a smaller one is better.
func (b *bench) noteRatio(name string, ratio float64) { b.ratios[name] = ratio }

func main() {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime logs a warning after 30 seconds
	b := &bench{clock: clock.RealClock{}, http: http.DefaultClient, ratios: map[string]float64{}}
	flag.IntVar(&b.secrets, "secrets", 8000, "foreign Secrets to create, half of them in the operand namespace")
	flag.IntVar(&b.workloads, "appwrappers", 500, "AppWrappers of two pods to run to success")
	flag.IntVar(&b.clusters, "rayclusters", 200, "RayClusters of one pod to create, with KubeRay")
	flag.IntVar(&b.models, "predictors", 1000, "Predictors to load in ten namespaces, by a fake of the routing layer")
	flag.DurationVar(&b.window, "window", time.Minute, "how long to watch a manager at rest")
	flag.BoolVar(&b.list, "list", false, "print each read and write of objects that is counted")
	flag.BoolVar(&b.bursts, "bursts", false, "compare bursts of each kind with a bare client instead")
	flag.IntVar(&b.burst, "burst", 100, "objects of a kind for -bursts, and the first number of -scale, whose other ones must be larger")
	flag.StringVar(&b.kinds, "kinds", "ModelRegistry,RayCluster,AppWrapper,Predictor", "the kinds that -bursts compares")
	flag.Var(&b.sizes, "scale", "measure with these numbers of objects of each kind instead, such as 1000,5000; -secrets is then the number of foreign Secrets and pods")
	flag.BoolVar(&b.leaking, "leaks", true, "with -scale, first create and delete bursts repeatedly, which takes minutes")
	flag.StringVar(&b.history, "history", "", "file of JSON lines with former ratios: the new ones are added, and the exit code is 1 if one is more than a fifth above the median")
	flag.StringVar(&b.profiles, "profiles", "", "folder for CPU profiles of manager and API server in each burst, and heap profiles of each new process")
	flag.BoolVar(&b.leader, "leader", false, "measure only how long a change of the leader takes")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	err := b.run(ctx, os.Stderr)
	b.print(os.Stdout)
	if err == nil && b.history != "" {
		err = appendMeasurement(b.history, measurement{Time: b.clock.Now().UTC(), Ratios: b.ratios})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type step struct {
	title string
	run   func(context.Context) error
}

// run runs all steps and stops everything that it has started.
func (b *bench) run(ctx context.Context, progress io.Writer) (err error) {
	if b.scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.scratch)) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	platform, memory := cluster.OpenShift, ""
	if b.bursts || len(b.sizes) > 0 {
		platform, memory = cluster.Plain, "8GiB" // registries would wait for the router of OpenShift
	}
	b.instance, err = cluster.Start(ctx, cluster.Options{
		Name: fmt.Sprintf("bench-%d", os.Getpid()), Platform: platform, Memory: memory, Ephemeral: true, Progress: progress,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.instance.Stop(context.WithoutCancel(ctx))) }()
	if err := b.connect(); err != nil {
		return err
	}
	defer func() {
		if b.network != nil {
			err = errors.Join(err, b.network.Stop(context.WithoutCancel(ctx)))
		}
	}()
	steps := []step{
		{"starting without objects", b.idle},
		{"starting again without objects", b.restartIdle},
		{"creating an MLflow", b.creation},
		{"watching it at rest and touched", b.measureIdle},
		{"restarting", b.restart},
		{"adding foreign Secrets", b.foreign},
		{"running AppWrappers", b.appWrappers},
		{"bringing up RayClusters", b.rayClusters},
		{"loading models", b.loadedModels},
		{"changing the leader", b.leaderChanges},
	}
	switch {
	case b.bursts:
		steps = []step{{"starting without objects", b.idle}, {"comparing with a bare client", b.compareAll}}
	case len(b.sizes) > 0:
		steps = []step{{"starting without objects", b.idle}, {"growing", b.measureGrowth}}
	}
	if b.leader {
		steps = []step{{"starting without objects", b.idle}, {"creating an MLflow", b.creation}, {"changing the leader", b.leaderChanges}}
	}
	for _, step := range steps {
		fmt.Fprintln(progress, step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return nil
}

// build builds the program as it is shipped.
func (b *bench) build(ctx context.Context) error {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	b.binary = filepath.Join(b.scratch, "manager")
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "manager", "BINARY="+b.binary)
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w\n%s", err, output)
	}
	info, err := os.Stat(b.binary)
	if err != nil {
		return fmt.Errorf("measuring the manager: %w", err)
	}
	b.note("binary, stripped", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "<= 48 MB", "274 MiB in sum")
	return nil
}

// connect creates the client of the administrator without a rate limit: it is also the bare client for comparison.
func (b *bench) connect() error {
	config, err := b.instance.Config()
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), mlflowv1.AddToScheme(scheme), awv1beta2.AddToScheme(scheme), servingv1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("registering types: %w", err)
	}
	if b.admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	b.audit = (&framework.Env{Instance: b.instance}).Audit()
	return nil
}

func (b *bench) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tOURS\tTARGET\tORIGINALS")
	for _, f := range b.figures {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, f.value, f.target, f.originals)
	}
	_ = table.Flush()
	if len(b.curve) > 0 {
		fmt.Fprintln(out, b.plot())
	}
}
