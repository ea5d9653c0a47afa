package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

const (
	// stopTimeout is less than terminationGracePeriodSeconds of legacy Deployments, 10 s, to leave time for releasing the Lease.
	stopTimeout = 8 * time.Second
	// noCacheSyncTimeout makes controllers wait for their caches without a limit, because an API server may be down for a long time.
	noCacheSyncTimeout = 100 * 365 * 24 * time.Hour
	// concurrentReconciles is the limit for each controller.
	concurrentReconciles = 4
	// reconcileTimeout ends a reconcile that reads a kind from the cache after its API was removed: such a read never returns.
	reconcileTimeout = 2 * time.Minute
	// minConnectBackoff and maxConnectBackoff limit the back-off while the API server is unreachable at the start.
	minConnectBackoff = time.Second
	maxConnectBackoff = 15 * time.Second
)

// errTLSChanged is the cause of a restart after a change of the TLS profile for servers in pods.
var errTLSChanged = errors.New("the TLS profile for servers in pods has changed")

// runManager runs the manager until ctx ends.
func runManager(ctx context.Context, p process) error {
	cfg, err := p.load(program(p), p.args)
	if err != nil {
		return err
	}
	disabled := cfg.DisableIncompleteComponents()
	if err := cfg.CheckComplete(); err != nil {
		return err
	}
	logger := zapr.NewLogger(zap.NewRaw(zap.UseFlagOptions(&cfg.Logging), zap.WriteTo(redact.Writer(p.stderr))))
	p.installLogger(logger)
	log := logger.WithName("manager")
	env := &Env{Config: cfg, Clock: clock.RealClock{}}
	specs := p.specs(env)
	if err := checkPorts(ctx, cfg, needsWebhooks(specs)); err != nil {
		return err
	}
	restConfig, err := newRESTConfig(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limitHeapGrowth()
	lowerMemoryLimit()
	permissions := &permissionMonitor{
		essential: essentialResources(enabledSpecs(specs, cfg.Enabled)), report: cancel, clock: env.Clock, gracePeriod: p.startupGracePeriod, startTime: env.Clock.Now(),
		series: map[string]refusalSeries{},
	}
	for _, reason := range disabled {
		log.Error(reason, "A component stays disabled")
	}
	for _, warning := range cfg.Warnings {
		log.Info("A setting has no effect", "reason", warning)
	}
	log.Info("Starting", "version", programVersion(), "components", cfg.EnabledComponents(), "namespace", cfg.Namespace)
	if err = loadClusterTLS(ctx, env, restConfig, log); err == nil {
		err = startManager(ctx, env, specs, restConfig, permissions, log)
	}
	// A cause other than context.Canceled explains later errors.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		// Informers of client-go back off for up to 30 s while the API server is down, and do not observe ctx during that time.
		log.Info("Stopped before all work had ended", "reason", err.Error())
		return nil
	}
	return err
}

const (
	// heapGrowthPercent is the garbage collection target. It saves memory of the mostly idle manager. A GOGC other than 100 overrides it.
	heapGrowthPercent        = 50
	defaultHeapGrowthPercent = 100
)

func limitHeapGrowth() {
	if percent := debug.SetGCPercent(heapGrowthPercent); percent != defaultHeapGrowthPercent {
		debug.SetGCPercent(percent)
	}
}

// lowerMemoryLimit limits the Go runtime to 90 % of GOMEMLIMIT, the memory limit of the container: the process uses other memory too.
func lowerMemoryLimit() {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}

// idlePeriod is the time without garbage collections after which memory is returned.
const idlePeriod = 5 * time.Second

// returnMemory returns memory to the operating system after each burst of work. Otherwise the memory of the initial
// lists stays resident for minutes, because an idle process rarely collects garbage.
func returnMemory(ctx context.Context, clk clock.Clock) {
	stats, lastGC, returnedGC := &debug.GCStats{}, int64(0), int64(0)
	for ctx.Err() == nil {
		debug.ReadGCStats(stats)
		if stats.NumGC == lastGC && lastGC != returnedGC {
			debug.FreeOSMemory()
			stats.NumGC++
			returnedGC = stats.NumGC
		}
		lastGC = stats.NumGC
		select {
		case <-ctx.Done():
		case <-clk.After(idlePeriod):
		}
	}
}

// startManager builds and runs the manager. It starts the program again if a required API was removed or the TLS profile changed.
func startManager(ctx context.Context, env *Env, specs []componentSpec, restConfig *rest.Config, permissions *permissionMonitor, log logr.Logger) error {
	scheme := newScheme()
	listener := tlsprofile.NewListener()
	if hasConfiguredTLS(env.Config) {
		listener.Set(env.Config.TLS)
	}
	hooks, err := newWebhooks(env, specs, restConfig, scheme, listener)
	if err != nil {
		return err
	}
	enabled := enabledSpecs(specs, env.Config.Enabled)
	options := managerOptions(env.Config, enabled, scheme, listener)
	options.WebhookServer, options.Cache.DefaultWatchErrorHandler = hooks.server, permissions.handle
	runCtx, restart := context.WithCancelCause(ctx)
	defer restart(nil)
	optionalKinds := component.WatchedKinds(componentsOf(enabled))
	watchers, err := newWatchers(runCtx, env, restConfig, listener, restart, optionalKinds.UnsortedList())
	if err != nil {
		return err
	}
	options.NewCache = managercache.NewFunc(optionalKinds, env.Capabilities.Current)
	if options.LeaderElectionResourceLockInterface, err = leaderLock(env.Config.LeaderElection, restConfig, env.Clock); err != nil {
		return err
	}
	hooks.setMetricsCertificate(&options.Metrics)
	recordBuildInfo()
	mgr, err := newManager(ctx, env.Clock, restConfig, options, log)
	if err != nil {
		return err
	}
	for _, watcher := range watchers {
		err = errors.Join(err, mgr.Add(watcher))
	}
	if err := errors.Join(err, env.Hub.AddTo(mgr), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("capabilities", env.Capabilities.Ready), hooks.addToManager(mgr)); err != nil {
		return fmt.Errorf("adding to the manager: %w", err)
	}
	env.FullObjectKinds = managercache.FullObjectKinds(cacheNeeds(enabled))
	if err := component.Setup(mgr, env.Capabilities, componentsOf(specs), env.Config.Enabled); err != nil {
		return err
	}
	go returnMemory(runCtx, env.Clock)
	err = mgr.Start(runCtx)
	if reason := errors.Join(context.Cause(runCtx), err); ctx.Err() == nil && (errors.Is(reason, component.ErrAPIRemoved) || errors.Is(reason, errTLSChanged)) {
		log.Info("Starting again", "reason", reason.Error())
		return hooks.limited.restart()
	}
	if err != nil && !errors.Is(err, component.ErrAPIRemoved) {
		return fmt.Errorf("running: %w", err)
	}
	log.Info("Stopped")
	return nil
}

// installLogger makes the Kubernetes libraries use the logger.
func installLogger(logger logr.Logger) {
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
}

// newRESTConfig returns the REST configuration with the precedence of controller-runtime.
func newRESTConfig(cfg config.Config) (*rest.Config, error) {
	// The library reads --kubeconfig only from a flag set that already defines the flag.
	flags := flag.NewFlagSet("kubeconfig", flag.ContinueOnError)
	flags.String(clientconfig.KubeconfigFlagName, cfg.Kubeconfig, "")
	clientconfig.RegisterFlags(flags)
	restConfig, err := clientconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w: run inside a cluster, or set KUBECONFIG or --kubeconfig", err)
	}
	restConfig.UserAgent = names.OperatorName + "/" + programVersion()
	restConfig.QPS = -1 // no client-side limit: the API server has priority and fairness
	return restConfig, nil
}

func managerOptions(cfg config.Config, enabled []componentSpec, scheme *runtime.Scheme, listener *tlsprofile.Listener) ctrl.Options {
	election, endpoint := cfg.LeaderElection, cfg.Metrics
	metrics := metricsserver.Options{BindAddress: endpoint.BindAddress, SecureServing: endpoint.Secure, CertDir: endpoint.CertPath, CertName: endpoint.CertName, KeyName: endpoint.CertKey}
	if endpoint.Secure {
		metrics.FilterProvider = metricsAuthFilter
		if endpoint.Pprof {
			metrics.ExtraHandlers = pprofHandlers()
		}
		// With HTTP/2, one connection could carry any number of requests.
		metrics.TLSOpts = append(metrics.TLSOpts, listener.Configure, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return ctrl.Options{
		Scheme: scheme, Cache: cacheOptions(enabled), Metrics: metrics,
		HealthProbeBindAddress: cfg.Health.BindAddress,
		LeaderElection:         election.Enabled, LeaderElectionID: names.OperatorName, LeaderElectionNamespace: election.Namespace,
		LeaseDuration: &election.LeaseDuration, RenewDeadline: &election.RenewDeadline, RetryPeriod: &election.RetryPeriod,
		LeaderElectionReleaseOnCancel: true, // safe, because the process exits after the manager stopped
		GracefulShutdownTimeout:       new(stopTimeout),
		Controller:                    ctrlconfig.Controller{CacheSyncTimeout: noCacheSyncTimeout, SkipNameValidation: new(true), MaxConcurrentReconciles: concurrentReconciles, ReconciliationTimeout: reconcileTimeout},
	}
}

// newManager builds the manager when the API server is reachable, because the cache looks up the scope of kinds.
func newManager(ctx context.Context, clk clock.Clock, restConfig *rest.Config, options ctrl.Options, log logr.Logger) (ctrl.Manager, error) {
	var mgr ctrl.Manager
	err := retryUntilReachable(ctx, clk, log, func() (err error) {
		if mgr, err = ctrl.NewManager(restConfig, options); err != nil {
			err = fmt.Errorf("building the manager: %w", err)
		}
		return err
	})
	return mgr, err
}

// retryUntilReachable repeats a request while its error isUnreachable or, for startupGracePeriod, isRetryableStartError.
func retryUntilReachable(ctx context.Context, clk clock.Clock, log logr.Logger, request func() error) error {
	started := clk.Now()
	for backoff := minConnectBackoff; ; backoff = min(2*backoff, maxConnectBackoff) {
		err := request()
		if err == nil || !isUnreachable(err) && (!isRetryableStartError(err) || clk.Since(started) >= startupGracePeriod) {
			return err
		}
		log.Info("A request to the API server failed; retrying", "reason", err.Error(), "retryAfter", backoff)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-clk.After(backoff):
		}
	}
}

// isUnreachable reports whether an error means that the API server, or an aggregated API, is temporarily unavailable.
func isUnreachable(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok { // *url.Error is one too
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		discovery.IsGroupDiscoveryFailedError(err) || errors.Is(err, context.DeadlineExceeded)
}

// isRetryableStartError reports whether the error may come from an API server that is still starting. Later, the same errors are
// permanent.
func isRetryableStartError(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err)
}

// newWatchers sets the dynamic client and the watchers of env, and returns the watchers of the served APIs and of OpenShift's TLS profile and
// ingress domain. When the TLS profile for servers in pods changes, the manager starts again.
func newWatchers(ctx context.Context, env *Env, restConfig *rest.Config, listener *tlsprofile.Listener, restart context.CancelCauseFunc, kinds []schema.GroupVersionKind) ([]manager.Runnable, error) {
	log := ctrl.Log
	discoveryClient, discoveryErr := discovery.NewDiscoveryClientForConfig(restConfig)
	metadataClient, metadataErr := metadata.NewForConfig(restConfig)
	dynamicClient, dynamicErr := dynamic.NewForConfig(restConfig)
	if err := errors.Join(discoveryErr, metadataErr, dynamicErr); err != nil {
		return nil, fmt.Errorf("building the clients for discovery, metadata and untyped objects: %w", err)
	}
	env.Dynamic = dynamicClient
	options := capability.Options{Discovery: discoveryClient, Metadata: metadataClient, Clock: env.Clock, Log: log.WithName("capability"), Kinds: kinds}
	if env.Config.Enabled(raycluster.ComponentName) {
		options.KubeRay = env.Dynamic
	}
	env.Capabilities = capability.New(options)
	profile := tlsprofile.NewWatcher(tlsprofile.Options{
		Listener: listener, Client: env.Dynamic, Clock: env.Clock, Log: log.WithName("tlsprofile"), Pods: env.Config.TLS,
		PodsChanged: func() { restart(errTLSChanged) },
	})
	env.Domain = clusterdomain.NewWatcher(env.Dynamic, env.Clock, log.WithName("clusterdomain"))
	if env.Config.Enabled(platform.ComponentName) {
		env.Hub = aihub.NewWatcher(env.Dynamic, env.Clock, log.WithName("aihub"))
	}
	env.Capabilities.OnChange(ctx, func(s capability.Set) {
		profile.SetServed(s.Has(capability.OpenShiftIngress) && !hasConfiguredTLS(env.Config))
		env.Domain.SetServed(s.Has(capability.OpenShiftIngress))
		env.Hub.SetServed(s.Has(aihub.Kind))
	})
	return []manager.Runnable{env.Capabilities, profile, env.Domain}, nil
}

// checkPorts reports an address that cannot be bound: the errors of the library do not name the setting.
func checkPorts(ctx context.Context, cfg config.Config, hasWebhooks bool) error {
	listeners := []struct{ setting, address string }{{"--metrics-bind-address", cfg.Metrics.BindAddress}, {"--health-probe-bind-address", cfg.Health.BindAddress}}
	if hasWebhooks && cfg.Webhook.Listener == 0 {
		listeners = append(listeners, struct{ setting, address string }{"--webhook-port", ":" + strconv.Itoa(cfg.Webhook.Port)})
	}
	for _, l := range listeners {
		if l.address == "0" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
		if err != nil {
			return fmt.Errorf("%s %q cannot be used: %w: choose another address, or stop the program that listens there", l.setting, l.address, err)
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("closing the trial listener on %q: %w", l.address, err)
		}
	}
	return nil
}
