package raycluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// variants are settings with different injections.
var variants = map[string]Settings{
	"OpenShift":                     onOpenShift(),
	"OpenShift, issued by the pods": onOpenShift().with(issuedByPod),
	"plain":                         onOpenShift().with(plain),
	"OpenShift, mTLS only":          onOpenShift().with(withoutOAuth),
	"plain, sidecar only":           onOpenShift().with(plain).with(withoutMTLS),
}

// clusterWithWorkerGroups returns a cluster with an autoscaler and three worker groups.
func clusterWithWorkerGroups(t testing.TB) map[string]any {
	t.Helper()
	object := parse(t, full)
	group := func(name, containers string) any {
		return parse(t, "groupName: "+name+"\ntemplate: {spec: {containers: "+containers+"}}")
	}
	groups := append(listAt(object, "spec", "workerGroupSpecs"),
		group("gpu", `[{name: w, image: "example.com/ray:2", volumeMounts: [{name: shm, mountPath: /dev/shm}]}, {name: exporter, image: "example.com/x:1"}]`),
		group("spot", `[{name: machine-learning, image: "example.com/ray:1"}]`))
	put(groups, "spec", "workerGroupSpecs")(object)
	return object
}

// injectedList is a list with injected elements.
type injectedList struct {
	list []string
	// message returns the error about a changed element of that name.
	message func(name string) string
	// onCreation reports whether the rule applies on creation too.
	onCreation func(name string) bool
}

func always(message string) func(string) string { return func(string) string { return message } }

func never(string) bool { return false }

// injectedLists returns all lists with injected elements of the head, the worker groups and the autoscaler.
func injectedLists(object map[string]any) []injectedList {
	ofSidecar := func(name string) bool { return name != raycluster.VolumeCA && name != raycluster.VolumeServer }
	ofVolumes := func(name string) string {
		if ofSidecar(name) {
			return "OAuth Proxy TLS Secret volume is immutable: leave it as the operator sets it"
		}
		return "ca-vol and server-cert Secret volumes are immutable: leave them as the operator sets them"
	}
	all := []injectedList{
		{in(headPod, "containers"), always("OAuth Proxy container is immutable: leave it as the operator sets it"), func(string) bool { return true }},
		{autoscalerEnv, always(autoscalerImmutable), never},
		{autoscalerMounts, always(autoscalerImmutable), never},
	}
	pods := [][]string{headPod}
	for i := range listAt(object, "spec", "workerGroupSpecs") {
		pods = append(pods, []string{"spec", "workerGroupSpecs", strconv.Itoa(i), "template", "spec"})
	}
	for _, pod := range pods {
		all = append(all,
			injectedList{in(pod, "initContainers"), always("create-cert Init Container is immutable: leave it as the operator sets it"), never},
			injectedList{in(pod, "volumes"), ofVolumes, ofSidecar},
			injectedList{in(pod, "containers", "0", "env"), always("RAY_TLS related environment variables are immutable: leave them as the operator sets them"), never},
			injectedList{in(pod, "containers", "0", "volumeMounts"), always("ca-vol and server-cert volume mounts are immutable: leave them as the operator sets them"), never})
	}
	return all
}

// leaves returns the paths of all scalars below a value, except names and those that users may set.
func leaves(value any, at fieldPath) []fieldPath {
	var out []fieldPath
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if name != "resources" && name != "imagePullPolicy" && name != "name" {
				out = append(out, leaves(value[name], at.child(name))...)
			}
		}
	case []any:
		for i := range value {
			out = append(out, leaves(value[i], at.child(strconv.Itoa(i)))...)
		}
	default:
		out = append(out, at)
	}
	return out
}

// differentValue returns a different value of the same type.
func differentValue(value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case int64:
		return value + 1
	default:
		return fmt.Sprint(value) + "-tampered"
	}
}

// causesOf returns the causes of a rejection, each "field: message".
func causesOf(t *testing.T, s Settings, object, old map[string]any) []string {
	t.Helper()
	response := validateObject(t, s, object, old)
	if response.Allowed {
		return nil
	}
	var out []string
	for _, cause := range response.Result.Details.Causes {
		out = append(out, cause.Field+": "+cause.Message)
	}
	return out
}

// storedClusters returns the stored clusters of a variant, with hashed names and, on OpenShift with OAuth, also with legacy ones.
func storedClusters(t *testing.T, s Settings) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{"hashed": applyDefaults(t, s, clusterWithWorkerGroups(t), nil)}
	if s.OpenShift && s.OAuth {
		all["legacy"] = applyDefaults(t, s, clusterWithWorkerGroups(t), clusterWithWorkerGroups(t))
	}
	return all
}

// [raycluster-16] [raycluster-17] [raycluster-21] [raycluster-22] [raycluster-23] [R33]: an update of any single value, except names and
// userFields, in an injected element of the head, a worker group or the autoscaler is rejected with field and message, and defaulting
// reverts it.
func TestInjectedValuesAreImmutable(t *testing.T) {
	for variant, s := range variants {
		for naming, stored := range storedClusters(t, s) {
			t.Run(variant+", "+naming, func(t *testing.T) {
				t.Parallel()
				expectAllowed(t, s, stored, stored)
				tested := 0
				submitted := clusterWithWorkerGroups(t)
				for _, injected := range injectedLists(stored) {
					own := namesAt(submitted, injected.list...)
					for i, name := range namesAt(stored, injected.list...) {
						if slices.Contains(own, name) {
							continue
						}
						for _, at := range leaves(listAt(stored, injected.list...)[i], fieldPath(injected.list).child(strconv.Itoa(i))) {
							tested++
							checkImmutable(t, s, stored, injected, name, at)
						}
					}
				}
				if tested < 20 {
					t.Errorf("only %d values were tested", tested)
				}
			})
		}
	}
}

func checkImmutable(t *testing.T, s Settings, stored map[string]any, injected injectedList, name string, at fieldPath) {
	t.Helper()
	changed := copyOf(stored, put(differentValue(nested.At(stored, at...)), at...))
	want := []string{strings.Join(injected.list, ".") + `: Invalid value: "` + name + `": ` + injected.message(name)}
	if diff := cmp.Diff(want, causesOf(t, s, changed, stored)); diff != "" {
		t.Errorf("update of %s (-want +got):\n%s", strings.Join(at, "."), diff)
	}
	if hashed := raycluster.View(stored).HasHashedNames(); hashed && injected.onCreation(name) {
		if diff := cmp.Diff(want, causesOf(t, s, changed, nil)); diff != "" {
			t.Errorf("creation with %s (-want +got):\n%s", strings.Join(at, "."), diff)
		}
	} else if hashed {
		expectAllowed(t, s, changed, nil)
	}
	if want, got := normalize(stored), normalize(applyDefaults(t, s, changed, stored)); !reflect.DeepEqual(want, got) {
		t.Errorf("defaulting does not revert %s (-want +got):\n%s", strings.Join(at, "."), cmp.Diff(want, got))
	}
}

// Missing and duplicate injected elements are rejected, and defaulting reverts them.
func TestInjectedElementsAreUnique(t *testing.T) {
	for variant, s := range variants {
		for naming, stored := range storedClusters(t, s) {
			t.Run(variant+", "+naming, func(t *testing.T) {
				t.Parallel()
				submitted := clusterWithWorkerGroups(t)
				for _, injected := range injectedLists(stored) {
					own := namesAt(submitted, injected.list...)
					for i, name := range namesAt(stored, injected.list...) {
						if slices.Contains(own, name) {
							continue
						}
						path := strings.Join(injected.list, ".")
						missing := path + ": Required value: " + injected.message(name)
						twice := path + `: Invalid value: "2 times ` + name + `": ` + injected.message(name)
						for want, change := range map[string]func(map[string]any){
							missing: func(o map[string]any) { dropAt(o, injected.list, i) },
							twice: func(o map[string]any) {
								addAt(o, injected.list, map[string]any{"name": name, "image": "example.com/evil:1"})
							},
						} {
							changed := copyOf(stored, change)
							if diff := cmp.Diff([]string{want}, causesOf(t, s, changed, stored)); diff != "" {
								t.Errorf("(-want +got):\n%s", diff)
							}
							reverted := applyDefaults(t, s, changed, stored)
							expectAllowed(t, s, reverted, stored)
							if diff := cmp.Diff(sortedNames(stored, injected.list), sortedNames(reverted, injected.list)); diff != "" {
								t.Errorf("defaulting does not revert %s (-want +got):\n%s", path, diff)
							}
						}
					}
				}
			})
		}
	}
}

func sortedNames(object map[string]any, list []string) []string {
	return slices.Sorted(slices.Values(namesAt(object, list...)))
}

// Users may change their own elements in each worker group without warnings, and the injections stay unchanged.
func TestUsersMayChangeTheirElements(t *testing.T) {
	for variant, s := range variants {
		for naming, stored := range storedClusters(t, s) {
			t.Run(variant+", "+naming, func(t *testing.T) {
				for i := range listAt(stored, "spec", "workerGroupSpecs") {
					pod := []string{"spec", "workerGroupSpecs", strconv.Itoa(i), "template", "spec"}
					for _, change := range []func(map[string]any){
						put("example.com/ray:9", in(pod, "containers", "0", "image")...),
						put(map[string]any{"limits": map[string]any{"memory": "8Gi"}}, in(pod, "containers", "0", "resources")...),
						put("robot", in(pod, "serviceAccountName")...),
						put(map[string]any{"a": "b"}, in(pod, "nodeSelector")...),
						put(int64(3), in(pod, "terminationGracePeriodSeconds")...),
						func(o map[string]any) {
							addAt(o, in(pod, "containers"), map[string]any{"name": "extra", "image": "example.com/e:1"})
							addAt(o, in(pod, "volumes"), map[string]any{"name": "extra", "emptyDir": map[string]any{}})
							addAt(o, in(pod, "containers", "0", "env"), map[string]any{"name": "EXTRA", "value": "1"})
							addAt(o, in(pod, "containers", "0", "volumeMounts"), map[string]any{"name": "extra", "mountPath": "/extra"})
						},
					} {
						changed := copyOf(stored, change)
						expectAllowed(t, s, changed, stored)
						// The same version of the operator with the same settings changes nothing.
						if diff := cmp.Diff(normalize(changed), normalize(applyDefaults(t, s, changed, stored))); diff != "" {
							t.Errorf("group %d (-want +got):\n%s", i, diff)
						}
					}
				}
			})
		}
	}
}
