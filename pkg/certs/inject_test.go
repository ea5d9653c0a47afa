package certs

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// caBundles returns the CA bundles of all webhooks of a configuration.
func caBundles(obj *unstructured.Unstructured) []any {
	var out []any
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, h := range hooks {
		bundle, _, _ := unstructured.NestedFieldNoCopy(h.(map[string]any), "clientConfig", "caBundle")
		out = append(out, bundle)
	}
	return out
}

func TestSyncInjectsCA(t *testing.T) {
	mutating := webhooks("m", hook("only", map[string]any{"url": "https://x"}))
	mutating.SetGroupVersionKind(Mutating)
	env := newEnvironment(t,
		webhooks("v", hook("first", map[string]any{"caBundle": "b2xk"}), hook("second", map[string]any{})),
		mutating,
		crdWithConversion("things.a.b", map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"clientConfig": map[string]any{"service": map[string]any{"name": "s"}}, "conversionReviewVersions": []any{"v1"}}}),
		crdWithConversion("plain.a.b", map[string]any{"strategy": "None"}),
	)
	targets := []Target{{Kind: Validating, Name: "v"}, {Kind: Mutating, Name: "m"}, {Kind: Conversion, Name: "things.a.b"}, {Kind: Conversion, Name: "plain.a.b"}}
	env.sync(env.replica(nil, targets...))
	bundle := base64.StdEncoding.EncodeToString(env.bundle())

	if diff := cmp.Diff([]any{bundle, bundle}, caBundles(env.get(targets[0]))); diff != "" {
		t.Errorf("validating (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{bundle}, caBundles(env.get(targets[1]))); diff != "" {
		t.Errorf("mutating (-want +got):\n%s", diff)
	}
	hooks, _, _ := unstructured.NestedSlice(env.get(targets[0]).Object, "webhooks")
	if hooks[0].(map[string]any)["unknownField"] != "kept" {
		t.Error("an unknown field of the webhook configuration was dropped")
	}
	got, _, _ := unstructured.NestedString(env.get(targets[2]).Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	if got != bundle {
		t.Error("the CA was not injected into the CRD")
	}
	if _, found, _ := unstructured.NestedMap(env.get(targets[3]).Object, "spec", "conversion", "webhook"); found {
		t.Error("a conversion webhook was added to a CRD without one")
	}
}

// The object may contain webhooks of another operator with another CA.
func TestSyncKeepsCAOfOtherServices(t *testing.T) {
	call := func(service string) map[string]any {
		return map[string]any{"caBundle": "b2xk", "service": map[string]any{"namespace": "any", "name": service}}
	}
	env := newEnvironment(t, webhooks("v", hook("own", call("own-webhook")), hook("foreign", call("foreign-webhook"))))
	target := Target{Kind: Validating, Name: "v", Service: "own-webhook"}
	env.sync(env.replica(nil, target))
	if diff := cmp.Diff([]any{base64.StdEncoding.EncodeToString(env.bundle()), "b2xk"}, caBundles(env.get(target))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSyncInjectsOtherTargetsAfterError(t *testing.T) {
	env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
	a := env.replica(nil, Target{Kind: Mutating, Name: "gone"}, Target{Kind: Validating, Name: "v"})
	_, err := a.Sync(t.Context())
	if err == nil || !strings.Contains(err.Error(), "writing the CA into MutatingWebhookConfiguration gone") {
		t.Errorf("got error %v, want one that names the missing configuration", err)
	}
	if caBundles(env.get(Target{Kind: Validating, Name: "v"}))[0] == nil {
		t.Error("the CA was not injected into the existing target")
	}
	env.expectTrusted(a, env.bundle(), "the first certificate, although a target is missing")
}

// A disabled component may have no manifests. Errors other than NotFound are reported.
func TestSyncIgnoresMissingOptionalTarget(t *testing.T) {
	env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
	a := env.replica(nil, Target{Kind: Mutating, Name: "gone", Optional: true}, Target{Kind: Validating, Name: "v", Optional: true})
	if _, err := a.Sync(t.Context()); err != nil {
		t.Errorf("Sync failed: %v", err)
	}
	if caBundles(env.get(Target{Kind: Validating, Name: "v"}))[0] == nil {
		t.Error("the CA was not injected into an optional target that exists")
	}
	failing := env.replica(&interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "v" {
				return errors.New("unreachable")
			}
			return c.Get(ctx, key, o, opts...)
		},
	}, Target{Kind: Validating, Name: "v", Optional: true})
	if _, err := failing.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("got error %v, want that of the request", err)
	}
}

// A renewed certificate is served despite errors, with one exception: while the previous certificate is valid, a certificate of a new CA is
// served only after all existing targets contain this CA.
func TestRenewedCertificateIsServedDespiteErrors(t *testing.T) {
	reachable, gone := Target{Kind: Validating, Name: "v"}, Target{Kind: Mutating, Name: "gone"}
	for name, test := range map[string]struct {
		target      Target
		newCA       bool
		step        time.Duration
		wantRenewed bool
	}{
		"missing target":                               {target: gone, step: leafLifetime * 3 / 4, wantRenewed: true},
		"missing target, new CA":                       {target: gone, newCA: true, step: time.Hour, wantRenewed: true},
		"unreachable target":                           {target: reachable, step: leafLifetime * 3 / 4, wantRenewed: true},
		"unreachable target, new CA":                   {target: reachable, newCA: true, step: leafLifetime * 3 / 4},
		"unreachable target, new CA, previous expired": {target: reachable, newCA: true, step: leafLifetime + time.Second, wantRenewed: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
			unreachable := false
			a := env.replica(&interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if unreachable && key.Name == "v" {
						return errors.New("unreachable")
					}
					return c.Get(ctx, key, o, opts...)
				},
			}, test.target)
			_, _ = a.Sync(t.Context())
			before := a.current.Load()
			if test.newCA {
				secret := env.secret()
				secret.Data = issue(t, env.clock.Now()).data
				if err := env.client.Update(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
			}
			unreachable = true
			env.clock.Step(test.step)
			if _, err := a.Sync(t.Context()); err == nil {
				t.Fatal("want an error for the target")
			}
			if renewed := a.current.Load() != before; renewed != test.wantRenewed {
				t.Errorf("the served certificate was replaced: %t, want %t", renewed, test.wantRenewed)
			}
			if test.target == reachable {
				unreachable = false
				env.sync(a)
				env.expectTrusted(a, env.bundle(), "after the injection")
			}
		})
	}
}

func issue(t *testing.T, now time.Time) *certificatePair {
	t.Helper()
	pair, err := ensurePair(nil, []string{serviceName}, now)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Until injectionTimeout, a replica is not ready before the CA is injected: the API server cannot call its webhooks. Missing targets, and
// forbidden targets of disabled components, do not delay readiness.
func TestReadyAfterInjection(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "v", nil)
	for name, test := range map[string]struct {
		target Target
		err    error // from reading the target
		waits  bool
	}{
		"written":                       {target: Target{Kind: Validating, Name: "v"}},
		"absent":                        {target: Target{Kind: Validating, Name: "gone"}},
		"API server unavailable":        {target: Target{Kind: Validating, Name: "v"}, err: errors.New("unreachable"), waits: true},
		"forbidden":                     {target: Target{Kind: Validating, Name: "v"}, err: forbidden, waits: true},
		"forbidden, disabled component": {target: Target{Kind: Validating, Name: "v", Optional: true}, err: forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
			failing := test.err
			var readyErr error
			var a *Authority
			intercept := &interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if key.Name == test.target.Name {
						readyErr = a.Ready(nil)
						if failing != nil {
							return failing
						}
					}
					return c.Get(ctx, key, o, opts...)
				},
			}
			for _, replica := range []string{"first", "second"} {
				a, failing = env.replica(intercept, test.target), test.err
				_, _ = a.Sync(t.Context())
				if readyErr == nil {
					t.Errorf("%s: Ready returned no error before the target was read", replica)
				}
				if err := a.Ready(nil); (err != nil) != test.waits {
					t.Errorf("%s: Ready returned %v after one sync", replica, err)
				}
				failing = nil
				_, _ = a.Sync(t.Context())
				if err := a.Ready(nil); err != nil {
					t.Errorf("%s: Ready returned %v after the second sync", replica, err)
				}
			}
		})
	}
}

func TestReadyAfterInjectionTimeout(t *testing.T) {
	env := newEnvironment(t, webhooks("v", hook("h", map[string]any{})))
	a := env.replica(&interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "v", nil)
		},
	}, Target{Kind: Validating, Name: "v"})
	var log strings.Builder
	a.Log = funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})
	_, _ = a.Sync(t.Context())
	env.clock.Step(injectionTimeout - time.Second)
	_, _ = a.Sync(t.Context())
	if a.Ready(nil) == nil {
		t.Error("Ready returned no error before the CA was injected")
	}
	env.clock.Step(time.Second)
	for range 2 {
		if err := a.Ready(nil); err != nil {
			t.Errorf("Ready returned %v after injectionTimeout", err)
		}
	}
	if strings.Count(log.String(), "Serving before all webhook configurations") != 1 {
		t.Errorf("want one line about serving without all targets in log:\n%s", log.String())
	}
}
