package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/url"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

const (
	// stopTimeout leaves the kubelet's grace period of 10 s a margin for releasing the Lease.
	stopTimeout = 8 * time.Second
	// patience is how long controllers wait for their caches. An API server may be away for long, and there is
	// nothing better to do than to wait for it.
	patience = 100 * 365 * 24 * time.Hour
	// concurrency of each controller.
	concurrency = 4
	// reconcileTimeout ends a reconcile that waits for an informer whose API has gone meanwhile; such a read never returns by itself.
	reconcileTimeout = 2 * time.Minute
	// connectMin and connectMax bound the pauses while the API server cannot be reached at the start.
	connectMin, connectMax = time.Second, 15 * time.Second
)

// runManager runs the controllers until ctx ends.
func runManager(ctx context.Context, p process) error {
	cfg, err := p.load(program(p), p.args)
	if err != nil {
		return err
	}
	left := cfg.DisableIncompleteComponents()
	if err := cfg.CheckComplete(); err != nil {
		return err
	}
	logger := zapr.NewLogger(zap.NewRaw(zap.UseFlagOptions(&cfg.Logging), zap.WriteTo(redact.Writer(p.stderr))))
	p.installLogger(logger)
	log := logger.WithName("manager")
	env := &Env{Config: cfg, Clock: clock.RealClock{}}
	rows := p.table(env)
	if err := checkPorts(ctx, cfg, needsWebhooks(rows)); err != nil {
		return err
	}
	restConfig, err := connection(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	collectEarly()
	leaveRoom()
	redact.Learn(restConfig)
	needed := &permissions{
		essential: essentials(enabledRows(rows, cfg.Enabled)), report: cancel, clock: env.Clock, borne: p.borne, began: env.Clock.Now(),
		refusals: map[string]refusals{},
	}
	for _, reason := range left {
		log.Error(reason, "A component stays off")
	}
	for _, notice := range cfg.Warnings {
		log.Info("A setting has no effect", "reason", notice)
	}
	log.Info("Starting", "version", programVersion(), "components", cfg.EnabledComponents(), "namespace", cfg.Namespace)
	if err = followTLS(ctx, env, restConfig, log); err == nil { // which changes the configuration that the table is made from
		err = serve(ctx, env, p.table(env), restConfig, needed, log)
	}
	// A cause that is not the plain end of ctx is the better explanation of whatever went wrong after it.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		// Informers of client-go pause for up to 30 s while the API server is away, and do not listen meanwhile.
		log.Info("Stopped before everything had ended", "reason", err.Error())
		return nil
	}
	return err
}

// The heap may grow by heapGrowth percent of what is alive until garbage is collected. A manager is at rest nearly always, and what
// it does not need for garbage is left to others. GOGC overrides it.
const heapGrowth, usualGrowth = 50, 100

func collectEarly() {
	if given := debug.SetGCPercent(heapGrowth); given != usualGrowth {
		debug.SetGCPercent(given)
	}
}

// leaveRoom keeps the heap below what GOMEMLIMIT states, which is the limit of the container: the program needs memory besides it.
func leaveRoom() {
	if given := debug.SetMemoryLimit(-1); given < math.MaxInt64 {
		debug.SetMemoryLimit(given / 10 * 9)
	}
}

// serve builds the manager and everything in it, and runs it until ctx ends.
func serve(ctx context.Context, env *Env, rows []row, restConfig *rest.Config, needed *permissions, log logr.Logger) error {
	all := bare(rows)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	if err := component.AddToScheme(scheme, all); err != nil {
		return err
	}
	listener := tlsprofile.NewListener()
	if configuredTLS(env.Config) {
		listener.Set(env.Config.TLS)
	}
	hooks, err := newWebhooks(env, rows, restConfig, scheme, listener)
	if err != nil {
		return err
	}
	options := managerOptions(env.Config, enabledRows(rows, env.Config.Enabled), scheme, listener)
	options.WebhookServer, options.Cache.DefaultWatchErrorHandler = hooks.server, needed.handle
	reads := &capability.CacheFactory{}
	options.NewCache = reads.NewCache
	if options.LeaderElectionResourceLockInterface, err = leaderLock(env.Config.LeaderElection, restConfig); err != nil {
		return err
	}
	hooks.secureMetrics(&options.Metrics)
	observeBuild()
	mgr, err := newManager(ctx, env.Clock, restConfig, options, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := addCapabilities(ctx, mgr, env, listener, cancel, component.WatchedKinds(component.Enabled(all, env.Config.Enabled))); err != nil {
		return err
	}
	reads.SetWatcher(env.Capabilities)
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("capabilities", env.Capabilities.Ready), hooks.addTo(mgr)); err != nil {
		return fmt.Errorf("adding to the manager: %w", err)
	}
	env.Whole = component.FullObjectKinds(component.Enabled(all, env.Config.Enabled))
	if err := component.Setup(ctx, mgr, env.Capabilities, all, env.Config.Enabled); err != nil {
		return err
	}
	err = mgr.Start(ctx)
	if errors.Is(err, component.ErrAPIRemoved) {
		log.Info("Ending, to be started again without what is gone", "reason", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("running: %w", err)
	}
	log.Info("Stopped")
	return nil
}

// installLogger sends what the Kubernetes libraries log through our logger.
func installLogger(logger logr.Logger) {
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
}

// connection finds the API server as every controller-runtime program does.
func connection(cfg config.Config) (*rest.Config, error) {
	// The library takes a kubeconfig only from a flag set that already has the flag.
	flags := flag.NewFlagSet("kubeconfig", flag.ContinueOnError)
	flags.String(clientconfig.KubeconfigFlagName, cfg.Kubeconfig, "")
	clientconfig.RegisterFlags(flags)
	restConfig, err := clientconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w: run inside a cluster, or set KUBECONFIG or --kubeconfig", err)
	}
	restConfig.UserAgent = names.OperatorName + "/" + programVersion()
	restConfig.QPS = -1 // the API server's priority and fairness limits us better than we could
	return restConfig, nil
}

func managerOptions(cfg config.Config, enabled []row, scheme *runtime.Scheme, listener *tlsprofile.Listener) ctrl.Options {
	le, m := cfg.LeaderElection, cfg.Metrics
	metrics := metricsserver.Options{
		BindAddress: m.BindAddress, SecureServing: m.Secure,
		CertDir: m.CertPath, CertName: m.CertName, KeyName: m.CertKey,
	}
	if m.Secure {
		metrics.FilterProvider = scraperFilter
		if m.Pprof {
			metrics.ExtraHandlers = profiles()
		}
		// With HTTP/2, one connection would carry any number of requests.
		metrics.TLSOpts = append(metrics.TLSOpts, listener.Configure, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return ctrl.Options{
		Scheme: scheme, Cache: cacheOptions(enabled), Metrics: metrics,
		HealthProbeBindAddress: cfg.Health.BindAddress,
		LeaderElection:         le.Enabled, LeaderElectionID: names.OperatorName, LeaderElectionNamespace: le.Namespace,
		LeaseDuration: &le.LeaseDuration, RenewDeadline: &le.RenewDeadline, RetryPeriod: &le.RetryPeriod,
		LeaderElectionReleaseOnCancel: true, // nothing of ours runs after the manager ended
		GracefulShutdownTimeout:       new(stopTimeout),
		Controller:                    ctrlconfig.Controller{CacheSyncTimeout: patience, MaxConcurrentReconciles: concurrency, ReconciliationTimeout: reconcileTimeout},
	}
}

// newManager builds the manager as soon as the API server answers: the cache asks it for the scope of kinds.
func newManager(ctx context.Context, clk clock.Clock, restConfig *rest.Config, options ctrl.Options, log logr.Logger) (ctrl.Manager, error) {
	var mgr ctrl.Manager
	err := whenAnswered(ctx, clk, log, func() (err error) {
		if mgr, err = ctrl.NewManager(restConfig, options); err != nil {
			err = fmt.Errorf("building the manager: %w", err)
		}
		return err
	})
	return mgr, err
}

// whenAnswered repeats a request until the API server answers it, and returns the error if the answer is one.
func whenAnswered(ctx context.Context, clk clock.Clock, log logr.Logger, request func() error) error {
	began := clk.Now()
	for pause := connectMin; ; pause = min(2*pause, connectMax) {
		err := request()
		if err == nil || !unreachable(err) && (!undecided(err) || clk.Since(began) >= refusalsBorne) {
			return err
		}
		log.Info("The API server does not answer; waiting for it", "reason", err.Error(), "retryAfter", pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-clk.After(pause):
		}
	}
}

// unreachable tells trouble that passes by itself from mistakes.
func unreachable(err error) bool {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		discovery.IsGroupDiscoveryFailedError(err) || errors.Is(err, context.DeadlineExceeded)
}

// undecided tells what an API server answers that has not read its roles yet. One that has answers the same where rights are missing.
func undecided(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err)
}

// addCapabilities follows what the cluster serves and, where it is OpenShift, its TLS profile and its domain; and the AIHub
// of the platform. Another TLS profile for servers in pods ends the manager, to be started again with it.
func addCapabilities(ctx context.Context, mgr ctrl.Manager, env *Env, listener *tlsprofile.Listener, end func(), kinds []schema.GroupVersionKind) error {
	restConfig, client, log := mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetLogger()
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(restConfig, client)
	if err != nil {
		return fmt.Errorf("building the discovery client: %w", err)
	}
	heads, err := metadata.NewForConfigAndClient(restConfig, client)
	if err != nil {
		return fmt.Errorf("building the metadata client: %w", err)
	}
	if env.Dynamic, err = dynamic.NewForConfigAndClient(restConfig, client); err != nil {
		return fmt.Errorf("building the dynamic client: %w", err)
	}
	options := capability.Options{
		Discovery: disco, Metadata: heads, Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Clock: env.Clock,
		Log: log.WithName("capability"), Kinds: kinds,
	}
	if env.Config.Enabled(raycluster.ComponentName) {
		options.KubeRay = env.Dynamic
	}
	env.Capabilities = capability.New(options)
	profile := tlsprofile.NewWatcher(tlsprofile.Options{
		Listener: listener, Client: env.Dynamic, Clock: env.Clock, Log: log.WithName("tlsprofile"), Pods: env.Config.TLS,
		PodsChanged: func() {
			log.Info("Ending, to be started again with another TLS profile for servers in pods")
			end()
		},
	})
	env.Domain = clusterdomain.NewWatcher(env.Dynamic, env.Clock, log.WithName("clusterdomain"))
	if env.Config.Enabled(platform.ComponentName) {
		env.Hub = aihub.NewWatcher(env.Dynamic, env.Clock, log.WithName("aihub"))
	}
	env.Capabilities.OnChange(ctx, func(s capability.Set) {
		profile.SetServed(s.Has(capability.OpenShiftIngress) && !configuredTLS(env.Config))
		env.Domain.SetServed(s.Has(capability.OpenShiftIngress))
		env.Hub.SetServed(s.Has(aihub.Kind))
	})
	if err := errors.Join(mgr.Add(env.Capabilities), mgr.Add(profile), mgr.Add(env.Domain), env.Hub.AddTo(mgr)); err != nil {
		return fmt.Errorf("adding to the manager: %w", err)
	}
	return nil
}

// checkPorts binds every listener for a moment: the library would name the address, but not the setting to change.
func checkPorts(ctx context.Context, cfg config.Config, webhooks bool) error {
	listeners := []struct{ setting, address string }{
		{"--metrics-bind-address", cfg.Metrics.BindAddress},
		{"--health-probe-bind-address", cfg.Health.BindAddress},
	}
	if webhooks {
		listeners = append(listeners, struct{ setting, address string }{"--webhook-port", ":" + strconv.Itoa(cfg.Webhook.Port)})
	}
	for _, l := range listeners {
		if l.address == "0" {
			continue
		}
		bound, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
		if err != nil {
			return fmt.Errorf("%s %q cannot be used: %w: choose another address or stop what listens there", l.setting, l.address, err)
		}
		if err := bound.Close(); err != nil {
			return fmt.Errorf("closing the trial listener on %q: %w", l.address, err)
		}
	}
	return nil
}

// leaderLock returns the Lease with the name of the pod as its holder, or nil for the library's, whose holder has another name in
// each process. A container that was killed and is restarted in its pod holds its Lease still, and need not wait for its end.
// No other process has the name of a pod.
func leaderLock(le config.LeaderElection, restConfig *rest.Config) (resourcelock.Interface, error) {
	if !le.Enabled || le.Identity == "" {
		return nil, nil //nolint:nilnil // none is what the library takes for its own
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, le.Namespace, names.OperatorName,
		resourcelock.ResourceLockConfig{Identity: le.Identity}, rest.AddUserAgent(restConfig, "leader-election"), le.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("building the lock of the leader: %w", err)
	}
	return lock, nil
}
