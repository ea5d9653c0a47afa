package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

func load(t *testing.T, args ...string) config.Config {
	t.Helper()
	cfg, err := config.Load(config.Program{Components: []string{"widgets"}}, args,
		func(string) (string, bool) { return "", false }, func(string) ([]byte, error) { return nil, errors.New("none") })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestManagerOptions(t *testing.T) {
	cfg := load(t, "-metrics-bind-address=:8443", "--namespace=here")
	o := managerOptions(cfg, testSpecs(nil), runtime.NewScheme(), tlsprofile.NewListener())
	if o.LeaderElectionID != "odh-platform-operator" || !o.LeaderElection || o.LeaderElectionNamespace != "here" || !o.LeaderElectionReleaseOnCancel {
		t.Errorf("unexpected leader election options: %+v", o)
	}
	if *o.LeaseDuration != 15*time.Second || *o.RenewDeadline != 10*time.Second || *o.RetryPeriod != 2*time.Second {
		t.Errorf("got lease %s, deadline %s and retry %s, want the defaults of client-go", o.LeaseDuration, o.RenewDeadline, o.RetryPeriod)
	}
	if o.Controller.CacheSyncTimeout < 24*time.Hour {
		t.Errorf("controllers stop waiting for their caches after %s, want at least 24h", o.Controller.CacheSyncTimeout)
	}
	if !o.Metrics.SecureServing || o.Metrics.FilterProvider == nil || len(o.Metrics.TLSOpts) != 2 || o.Metrics.BindAddress != ":8443" {
		t.Errorf("unexpected metrics options: %+v", o.Metrics)
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, set := range o.Metrics.TLSOpts {
		set(tlsConfig)
	}
	if !slices.Equal(tlsConfig.NextProtos, []string{"http/1.1"}) {
		t.Errorf("got protocols %q, want only HTTP/1.1", tlsConfig.NextProtos)
	}
	if o.Metrics.ExtraHandlers != nil || len(managerOptions(load(t, "--pprof"), nil, runtime.NewScheme(), tlsprofile.NewListener()).Metrics.ExtraHandlers) != 3 {
		t.Error("the profiling handlers are enabled by default, or not enabled by --pprof")
	}
	insecure := managerOptions(load(t, "--metrics-secure=false"), nil, runtime.NewScheme(), tlsprofile.NewListener())
	if insecure.Metrics.SecureServing || insecure.Metrics.FilterProvider != nil {
		t.Error("metrics without TLS authenticate clients")
	}
}

func TestNewRESTConfig(t *testing.T) {
	setKubeconfig(t, "http://127.0.0.1:1")
	restConfig, err := newRESTConfig(load(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(restConfig.UserAgent, "odh-platform-operator/") || restConfig.QPS != -1 {
		t.Errorf("unexpected user agent %q or QPS %v", restConfig.UserAgent, restConfig.QPS)
	}
}

func TestIsUnreachable(t *testing.T) {
	refused := &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"joined with a refused connection": {errors.Join(errors.New("x"), refused), true},
		"starting":                         {apierrors.NewServiceUnavailable("starting"), true},
		"internal":                         {apierrors.NewInternalError(errors.New("etcd")), true},
		"busy":                             {apierrors.NewTooManyRequests("busy", 1), true},
		"deadline exceeded":                {context.DeadlineExceeded, true},
		"forbidden":                        {apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), false},
		"scheme error":                     {errors.New("no kind is registered"), false},
	} {
		if got := isUnreachable(tc.err); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// newManager retries while the API server is unreachable, and for startupGracePeriod while it rejects requests. It returns other errors.
func TestNewManagerWaitsForAPIServer(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	options := managerOptions(load(t, "--health-probe-bind-address=0"), nil, runtime.NewScheme(), tlsprofile.NewListener())
	attempts := make(chan struct{}, 10)
	options.LeaderElection = false
	options.MapperProvider = failingMapper(attempts, &url.Error{Op: "Get", Err: errors.New("refused")})
	done := make(chan error, 1)
	go func() {
		_, err := newManager(ctx, clk, &rest.Config{Host: "http://127.0.0.1:1"}, options, logr.Discard())
		done <- err
	}()
	for pause := minConnectBackoff; pause < 5*time.Second; pause *= 2 {
		<-attempts
		eventually(t, "newManager waits", clk.HasWaiters)
		clk.Step(pause)
	}
	<-attempts
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}

	// An API server that rejects everything may be starting, so it is retried for startupGracePeriod.
	newClock := clocktesting.NewFakeClock(time.Unix(0, 0)) // without the canceled waiter
	forbiddenErr := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	options.MapperProvider = failingMapper(attempts, forbiddenErr)
	go func() {
		_, err := newManager(t.Context(), newClock, &rest.Config{Host: "http://127.0.0.1:1"}, options, logr.Discard())
		done <- err
	}()
	for pause := minConnectBackoff; pause < startupGracePeriod; pause *= 2 {
		<-attempts
		eventually(t, "newManager waits", newClock.HasWaiters)
		newClock.Step(pause)
	}
	<-attempts
	if err := <-done; !apierrors.IsForbidden(err) {
		t.Errorf("got error %v, want Forbidden", err)
	}

	options.MapperProvider = failingMapper(attempts, errors.New("a mistake"))
	if _, err := newManager(t.Context(), newClock, &rest.Config{Host: "http://127.0.0.1:1"}, options, logr.Discard()); err == nil || !strings.Contains(err.Error(), "a mistake") {
		t.Errorf("got error %v, want a mistake", err)
	}
}

func specsWithWebhooks(*Env) []componentSpec {
	return []componentSpec{{
		Component:       component.Component{Name: "widgets", Webhooks: func(ctrl.Manager, bool) error { return nil }},
		CABundleTargets: []certs.Target{{Kind: certs.Validating, Name: "hooks"}},
	}}
}

func TestNoWebhookServerWithoutWebhooks(t *testing.T) {
	none, err := newWebhooks(&Env{Config: load(t)}, testSpecs(nil), nil, nil, nil)
	if err != nil || none.server != nil || none.addToManager(nil) != nil {
		t.Errorf("got server %+v and error %v, want no server without webhooks", none, err)
	}
}

func TestWebhookCertificateSource(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	empty := t.TempDir()
	for name, tc := range map[string]struct {
		mode      config.WebhookMode
		self      bool
		wantError string
	}{
		"auto":    {mode: config.WebhookAuto, self: true},
		"self":    {mode: config.WebhookSelf, self: true},
		"mounted": {mode: config.WebhookMounted, wantError: "--webhook-cert-mode=self"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, "--webhook-cert-mode="+string(tc.mode), "--webhook-cert-dir="+empty, "--namespace=here")
			env := &Env{Config: cfg, Clock: clock.RealClock{}}
			hooks, err := newWebhooks(env, specsWithWebhooks(env), &rest.Config{Host: api.URL}, runtime.NewScheme(), tlsprofile.NewListener())
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got error %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			authority, self := hooks.certificate.(*certs.Authority)
			if self != tc.self {
				t.Fatalf("got a certificate of type %T, want a *certs.Authority: %t", hooks.certificate, tc.self)
			}
			if authority.Secret.String() != "here/odh-platform-operator-webhook-cert" || authority.DNSNames[0] != "odh-platform-operator-webhook.here.svc" ||
				authority.Targets[0].Name != "hooks" || authority.Targets[0].Optional {
				t.Errorf("got %+v, want the Secret and the target of the manager", authority.Options)
			}
			if _, err := authority.GetCertificate(&tls.ClientHelloInfo{}); err == nil {
				t.Error("got a certificate before the first sync")
			}
		})
	}
}

// The manifests of a disabled component may be absent.
func TestCABundleTargetsOfDisabledComponentsAreOptional(t *testing.T) {
	env := &Env{Config: load(t), Clock: clock.RealClock{}}
	specs := append(specsWithWebhooks(env), componentSpec{Component: component.Component{Name: "disabled"}, CABundleTargets: []certs.Target{{Kind: certs.Mutating, Name: "other"}}})
	got := authorityOptions(env, specs, nil).Targets
	want := []certs.Target{{Kind: certs.Validating, Name: "hooks", Service: webhookService}, {Kind: certs.Mutating, Name: "other", Optional: true, Service: webhookService}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The specs of all components are complete.
func TestComponentSpecs(t *testing.T) {
	seen, last := map[string]bool{}, ""
	owners := map[string]string{}
	for _, spec := range componentSpecs(&Env{}) {
		if other, found := owners[spec.FieldOwner]; found && spec.FieldOwner != "" {
			t.Errorf("components %s and %s write as %s: field owners must be unique", other, spec.Name, spec.FieldOwner)
		}
		owners[spec.FieldOwner] = spec.Name
		if !names.IsComponent(spec.Name) {
			t.Errorf("component %s is not known to names.IsComponent", spec.Name)
		}
		if spec.Name == "" || seen[spec.Name] && spec.Name != last {
			t.Errorf("component %q: the name is empty, or specs of that name are not adjacent", spec.Name)
		}
		seen[spec.Name], last = true, spec.Name
		appliesNothing := spec.Name == "platform" // it creates and deletes objects, and applies none
		if spec.Controllers != nil && (spec.FieldOwner == "" && !appliesNothing || len(essentialResources([]componentSpec{spec})) == 0) {
			t.Errorf("component %s: a component with controllers needs a field owner and an essential kind", spec.Name)
		}
	}
	if cacheOptions(componentSpecs(&Env{})).DefaultTransform == nil {
		t.Error("the cache has no DefaultTransform")
	}
}
