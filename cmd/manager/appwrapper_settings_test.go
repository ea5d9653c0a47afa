package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func legacyConfigMap(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: name}, Data: map[string]string{"config.yaml": text}}
}

// countingReader returns a client with ConfigMaps that counts reads.
func countingReader(reads *int, maps ...client.Object) client.Reader {
	return fake.NewClientBuilder().WithObjects(maps...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
}

func TestAppWrapperConfigIsReadOnce(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	reads := 0
	live := countingReader(&reads,
		legacyConfigMap("codeflare-operator-config", "kuberay: {}\nappwrapper: {enabled: true, Config: {schedulerName: packed, faultTolerance: {resetPause: 5000000000}}}"),
		legacyConfigMap("appwrapper-operator-config", "appwrapper: {defaultQueueName: team, shedulerName: x, autopilot: {resourceTaints: {example.com/card: [{key: a, value: b, effect: NoExecute}]}}}"))
	source := &appWrapperConfig{config: load(t)}
	for range 3 {
		got, err := source.get(t.Context(), live, log)
		if err != nil {
			t.Fatal(err)
		}
		if got.DefaultQueueName != "team" || got.SchedulerName != "packed" || got.FaultTolerance.ResetPause != 5*time.Second ||
			got.Autopilot.ResourceTaints["example.com/card"][0].Effect != "NoExecute" {
			t.Errorf("got %+v, want the settings of both ConfigMaps", got)
		}
	}
	if reads != 2 {
		t.Errorf("got %d reads, want one for each ConfigMap", reads)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "appwrapper.shedulerName is unknown") {
		t.Errorf("got log %q, want one line about the unknown key", lines)
	}
}

// A null section disables autopilot.
func TestAutopilotCanBeDisabled(t *testing.T) {
	reads := 0
	source := &appWrapperConfig{config: load(t)}
	got, err := source.get(t.Context(), countingReader(&reads, legacyConfigMap("appwrapper-operator-config", "appwrapper: {autopilot: null}")), logr.Discard())
	if err != nil || got.Autopilot != nil {
		t.Errorf("got autopilot %+v, error %v, want it disabled", got.Autopilot, err)
	}
}

// An error names the ConfigMap or its namespace, the key, the value and the fix. The ConfigMaps are read again until they are valid.
func TestAppWrapperConfigErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"invalid value": {"appwrapper: {faultTolerance: {resetPause: soon}}", []string{"ConfigMap opendatahub/appwrapper-operator-config", "resetPause", `"soon"`, "must be a duration"}},
		"conflicting values": {"appwrapper: {faultTolerance: {admissionGracePeriod: 600000000000}}",
			[]string{"namespace opendatahub", "admissionGracePeriod", "10m0s", "warmupGracePeriod"}},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			source := &appWrapperConfig{config: load(t)}
			_, err := source.get(t.Context(), countingReader(&reads, legacyConfigMap("appwrapper-operator-config", tc.text)), logr.Discard())
			if err == nil {
				t.Fatal("the configuration was not rejected")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if _, err := source.get(t.Context(), countingReader(&reads), logr.Discard()); err != nil {
				t.Errorf("got error %v after the ConfigMap was deleted, want none", err)
			}
		})
	}
	failing := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("unreachable")
		},
	}).Build()
	if _, err := (&appWrapperConfig{config: load(t)}).get(t.Context(), failing, logr.Discard()); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("got error %v, want that of the request", err)
	}
}
