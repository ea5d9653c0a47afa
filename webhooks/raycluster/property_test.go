package raycluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// generator draws clusters with injected, similar and other elements in any order and number.
type generator struct {
	*rapid.T
	// pool are clusters with injected elements.
	pool []map[string]any
}

// drawElements draws from the elements of all templates of the pool and the given ones.
func (d generator) drawElements(label string, pods [][]string, list []string, candidates ...any) []any {
	for _, object := range d.pool {
		for _, pod := range pods {
			candidates = append(candidates, listAt(object, in(pod, list...)...)...)
		}
	}
	return rapid.SliceOfN(rapid.SampledFrom(candidates), 0, 5).Draw(d.T, label)
}

func (d generator) pod(label string) map[string]any {
	pods := [][]string{headPod, worker0}
	spec := map[string]any{
		"containers":     d.drawElements(label+" containers", pods, []string{"containers"}, element{"name": "ray", "image": "a"}, element{"name": "own"}, element{"name": "oauth-proxy"}, element{}),
		"initContainers": d.drawElements(label+" inits", pods, []string{"initContainers"}, element{"name": "prepare"}, element{"name": "create-cert"}),
		"volumes":        d.drawElements(label+" volumes", pods, []string{"volumes"}, element{"name": "data"}, element{"name": "ca-vol"}, element{"name": "server-cert", "emptyDir": element{}}),
	}
	if containers := spec["containers"].([]any); len(containers) > 0 {
		first := runtime.DeepCopyJSON(containers[0].(map[string]any))
		first["env"] = d.drawElements(label+" env", pods, []string{"containers", "0", "env"}, element{"name": "OWN"}, element{"name": "RAY_USE_TLS", "value": "0"})
		first["volumeMounts"] = d.drawElements(label+" mounts", pods, []string{"containers", "0", "volumeMounts"}, element{"name": "data", "mountPath": "/d"}, element{"name": "ca-vol", "mountPath": "/x"})
		containers[0] = first
	}
	if account := rapid.SampledFrom([]any{nil, "", "mine", "c-oauth-proxy", "full-oauth-proxy-63ef1e47"}).Draw(d.T, label+" account"); account != nil {
		spec["serviceAccountName"] = account
	}
	return spec
}

func (d generator) cluster(label string) map[string]any {
	object := map[string]any{"metadata": map[string]any{"name": rapid.SampledFrom([]string{"full", "c"}).Draw(d.T, label+" name"), "namespace": "team"}}
	for _, key := range []string{raycluster.AnnotationVersion, raycluster.AnnotationServiceAccount, raycluster.AnnotationKeepServiceAccount, raycluster.AnnotationCertificates} {
		if value := rapid.SampledFrom([]any{nil, nil, "true", "pod", "mine"}).Draw(d.T, label+" "+key); value != nil {
			put(value, "metadata", "annotations", key)(object)
		}
	}
	put(d.pod(label+" head"), headPod...)(object)
	var groups []any
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"small", "big"}), 0, 2, rapid.ID[string]).Draw(d.T, label+" groups") {
		groups = append(groups, element{"groupName": name, "template": element{"spec": d.pod(label + " " + name)}})
	}
	put(groups, "spec", "workerGroupSpecs")(object)
	put(rapid.Bool().Draw(d.T, label+" autoscaled"), "spec", "enableInTreeAutoscaling")(object)
	put(d.drawElements(label+" autoscaler env", [][]string{nil}, autoscalerEnv, element{"name": "OWN"}), autoscalerEnv...)(object)
	put(d.drawElements(label+" autoscaler mounts", [][]string{nil}, autoscalerMounts, element{"name": "ca-vol", "mountPath": "/x"}), autoscalerMounts...)(object)
	return object
}

// The invariants of FuzzAdmission, for generated clusters.
func TestAdmissionInvariants(t *testing.T) {
	var pool []map[string]any
	for _, s := range []Settings{onOpenShift(), onOpenShift().with(issuedByPod), onOpenShift().with(plain), onOpenShift().with(newRelease)} {
		pool = append(pool, applyDefaults(t, s, parse(t, full), nil), applyDefaults(t, s, parse(t, full), parse(t, full)))
	}
	rapid.Check(t, func(r *rapid.T) {
		d := generator{r, pool}
		s := onOpenShift()
		for _, change := range []func(*Settings){withoutOAuth, withoutMTLS, plain, issuedByPod, newRelease} {
			if rapid.Bool().Draw(r, "setting") {
				change(&s)
			}
		}
		object := mustMarshal(t, d.cluster("new"))
		old := object
		switch rapid.IntRange(0, 2).Draw(r, "old") {
		case 0:
			old = nil
		case 1:
			old = mustMarshal(t, d.cluster("old"))
		}
		checkInvariants(rapidTB{t, r}, s, object, old)
	})
}

// rapidTB reports failures to rapid, which then shrinks the example.
type rapidTB struct {
	testing.TB
	r *rapid.T
}

func (f rapidTB) Helper()                           { f.r.Helper() }
func (f rapidTB) Errorf(format string, args ...any) { f.r.Fatalf(format, args...) }
func (f rapidTB) Fatalf(format string, args ...any) { f.r.Fatalf(format, args...) }
