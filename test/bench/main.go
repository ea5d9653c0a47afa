// Command bench measures the manager against the targets of the project, and prints a table. It starts its own control plane and
// the stripped program with the shipped permissions. A missed target is not a failure: times depend on the machine. The exit code
// is 1 only if a measurement fails, or with -history if a ratio has become worse by more than a fifth.
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

const timeout = 3 * time.Hour

type bench struct {
	instance *cluster.Instance
	admin    client.Client
	audit    *framework.Audit
	manager  *operator.Manager
	binary   string
	scratch  string
	clock    clock.Clock

	// secrets, appWrappers, rayClusters and predictors are the numbers of objects to create.
	secrets, appWrappers, rayClusters, predictors int

	network *modelmesh.Network
	window  time.Duration
	// verbose enables printing of each counted request.
	verbose bool
	figures []figure
	// burst is the number of objects of a kind for the comparison with the bare client.
	burst int
	// bursts enables the comparison with the bare client instead of all other figures. kinds lists the kinds to compare.
	bursts bool
	kinds  string
	// ratios are compared with the history, by name.
	ratios map[string]float64
	// history is the file with previous ratios; empty for none.
	history string
	// profiles is the folder for profiles of bursts and of new processes; empty for none.
	profiles string
	// http reads the metrics and the profiles of the manager.
	http *http.Client
	// leaderOnly limits the measurement to leader changes.
	leaderOnly bool
	// options of the manager.
	options operator.Options
	// sizes, if set, are the numbers of objects of each kind for which growth is measured instead of all other figures.
	sizes sizes
	curve []usage
	// checkLeaks enables the rounds of creation and deletion before growth is measured.
	checkLeaks bool
}

// figure is a row of the table. replaced is the value of the replaced operators. target and replaced may be empty.
type figure struct{ name, value, target, replaced string }

func (b *bench) addFigure(name, value, target, replaced string) {
	b.figures = append(b.figures, figure{name, value, target, replaced})
}

// addRatio adds a ratio for the history; smaller is better.
func (b *bench) addRatio(name string, ratio float64) { b.ratios[name] = ratio }

func main() {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime logs a warning after 30 seconds
	b := &bench{clock: clock.RealClock{}, http: http.DefaultClient, ratios: map[string]float64{}}
	flag.IntVar(&b.secrets, "secrets", 8000, "foreign Secrets to create, half of them in the operand namespace")
	flag.IntVar(&b.appWrappers, "appwrappers", 500, "AppWrappers of two pods to run to success")
	flag.IntVar(&b.rayClusters, "rayclusters", 200, "RayClusters of one pod to create, with KubeRay")
	flag.IntVar(&b.predictors, "predictors", 1000, "Predictors to load in ten namespaces, by a fake of the routing layer")
	flag.DurationVar(&b.window, "window", time.Minute, "how long to observe an idle manager")
	flag.BoolVar(&b.verbose, "list", false, "print each counted read and write")
	flag.BoolVar(&b.bursts, "bursts", false, "measure only bursts of each kind, compared with a bare client")
	flag.IntVar(&b.burst, "burst", 100, "objects of each kind for -bursts, and the first size of -scale, whose other sizes must be larger")
	flag.StringVar(&b.kinds, "kinds", "ModelRegistry,RayCluster,AppWrapper,Predictor", "kinds that -bursts compares")
	flag.Var(&b.sizes, "scale", "measure only growth, with these numbers of objects of each kind, such as 1000,5000; -secrets is then the number of foreign Secrets and pods")
	flag.BoolVar(&b.checkLeaks, "leaks", true, "with -scale, first create and delete bursts repeatedly, which takes minutes")
	flag.StringVar(&b.history, "history", "", "file of JSON lines with previous ratios: the new ones are appended, and the exit code is 1 if one is more than a fifth above the median")
	flag.StringVar(&b.profiles, "profiles", "", "folder for CPU profiles of manager and API server in each burst and, with -scale, after each restart, with heap profiles")
	flag.BoolVar(&b.leaderOnly, "leader", false, "measure only how long a change of the leader takes")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, timeout)
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

// run runs the selected steps and stops everything that it has started.
func (b *bench) run(ctx context.Context, progress io.Writer) (err error) {
	if b.scratch, err = os.MkdirTemp("", "bench-"); err != nil {
		return fmt.Errorf("creating a temporary folder: %w", err)
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
		{"starting without objects", b.measureStart},
		{"starting again without objects", b.measureIdleRestart},
		{"creating an MLflow", b.measureCreation},
		{"observing it idle and after changes", b.measureIdle},
		{"restarting", b.measureMLflowRestart},
		{"adding foreign Secrets", b.measureForeignSecrets},
		{"running AppWrappers", b.measureAppWrappers},
		{"creating RayClusters", b.measureRayClusters},
		{"loading models", b.measurePredictors},
		{"changing the leader", b.measureLeaderChanges},
	}
	switch {
	case b.bursts:
		steps = []step{{"starting without objects", b.measureStart}, {"comparing with a bare client", b.compareAll}}
	case len(b.sizes) > 0:
		steps = []step{{"starting without objects", b.measureStart}, {"growing", b.measureGrowth}}
	}
	if b.leaderOnly {
		steps = []step{{"starting without objects", b.measureStart}, {"creating an MLflow", b.measureCreation}, {"changing the leader", b.measureLeaderChanges}}
	}
	for _, step := range steps {
		fmt.Fprintln(progress, step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return nil
}

// build builds the manager as in a release.
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
	b.addFigure("binary, stripped", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "<= 48 MB", "274 MiB in total")
	return nil
}

// connect creates an administrator's client without a rate limit, which is also the bare client of the comparisons.
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
	fmt.Fprintln(table, "FIGURE\tVALUE\tTARGET\tREPLACED OPERATORS")
	for _, f := range b.figures {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.name, f.value, f.target, f.replaced)
	}
	_ = table.Flush()
	if len(b.curve) > 0 {
		fmt.Fprintln(out, b.plot())
	}
}
