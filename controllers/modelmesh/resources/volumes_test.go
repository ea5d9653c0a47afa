package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// [modelmesh-24] [modelmesh-16] The volumes in their order.
func TestVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		in   RuntimeInputs
		want string
	}{
		"a puller":                 {inputs(runtimeSpec()), "models-dir storage-config tc-config etcd-config"},
		"a volume":                 {inputs(runtimeSpec(ownVolume("my-volume"))), "my-volume models-dir storage-config tc-config etcd-config"},
		"sockets":                  {inputs(runtimeSpec(onSockets)), "models-dir domain-socket storage-config tc-config etcd-config"},
		"an adapter":               {inputs(runtimeSpec(withAdapter)), "models-dir storage-config tc-config etcd-config"},
		"no puller and no adapter": {inputs(runtimeSpec(pullerless)), "models-dir tc-config etcd-config"},
		"an adapter anyway":        {inputs(runtimeSpec(withAdapter, pullerless)), "models-dir storage-config tc-config etcd-config"},
		"claims":                   {inputs(runtimeSpec(), claiming("b", "a", "b")), "models-dir storage-config a b tc-config etcd-config"},
		"all volumes": {inputs(runtimeSpec(onSockets, ownVolume("own")), encrypted, claiming("a"), func(in *RuntimeInputs) {
			in.Proxy = withOAuthProxy()
		}), "own proxy-tls models-dir domain-socket storage-config a tc-config etcd-config tls-certs"},
	} {
		if got := strings.Join(volumeNames(podOf(t, c.in)), " "); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// The limit is 1.5 times the memory limits of the servers.
func TestModelsSizeLimit(t *testing.T) {
	for want, limits := range map[string][]string{
		"0": {""}, "1536Mi": {"1Gi"}, "3Gi": {"1Gi", "1Gi"}, "1500": {"1k"}, "1": {"1"}, "4": {"3"}, "768Mi": {"", "512Mi"},
		"9223372036854775807": {"8Ei", "8Ei"},
	} {
		spec := runtimeSpec(pullerless, func(s *v1alpha1.ServingRuntimeSpec) { s.Containers = nil })
		for i, limit := range limits {
			withExtraContainer(fmt.Sprintf("s%d", i))(spec)
			if limit != "" {
				spec.Containers[i].Resources.Limits = memory(limit)
			}
		}
		for _, v := range podOf(t, inputs(spec)).Volumes {
			if v.Name == modelmesh.ModelsVolume && v.EmptyDir.SizeLimit.String() != want {
				t.Errorf("%v gave %s, want %s", limits, v.EmptyDir.SizeLimit, want)
			}
		}
	}
}

// Each container has its own list of mounts, so that no model server sees the storage credentials. [M3]
func TestClaimMountsPerContainer(t *testing.T) {
	for n := range 12 {
		var claims []string
		for i := range n {
			claims = append(claims, fmt.Sprintf("claim-%02d", i))
		}
		for form, change := range forms {
			pod := podOf(t, inputs(runtimeSpec(withAdapter, onDataSocket, ownVolume("own"), ownMount("own", "/own"), withExtraContainer("second")), change, claiming(claims...)))
			want := []string{"models-dir /models"}
			for _, claim := range claims {
				want = append(want, claim+" /pvc_mounts/"+claim)
			}
			for name, more := range map[string][]string{
				"triton": {"own /own", "domain-socket /tmp/own"}, "second": {"domain-socket /tmp/own"},
				"triton-adapter": {"storage-config /storage-config", "domain-socket /tmp/own"},
			} {
				if diff := cmp.Diff(slices.Concat(want, more), mounts(container(t, pod, name))); diff != "" {
					t.Errorf("%d claims, form %s, %s (-want +got):\n%s", n, form, name, diff)
				}
			}
		}
	}
}

func onDataSocket(s *v1alpha1.ServingRuntimeSpec) {
	s.GRPCDataEndpoint = new("unix:/tmp/own/data.sock")
}

// A claim with a name that no volume can have, or that another volume has, is mounted at the path of its name. [M39]
func TestClaimVolumeNames(t *testing.T) {
	long := strings.Repeat("long-", 20) + "a"
	claims := []string{"plain", "with.dots", "with-dots", "own", "tc-config", "tls-certs", long, long + "b"}
	pod := podOf(t, inputs(runtimeSpec(ownVolume("own")), claiming(claims...)))
	found := map[string]string{}
	for _, v := range pod.Volumes {
		if problems := validation.IsDNS1123Label(v.Name); len(problems) > 0 {
			t.Errorf("volume %s: %q", v.Name, problems)
		}
		if c := v.PersistentVolumeClaim; c != nil {
			if !c.ReadOnly {
				t.Errorf("%s can be written", c.ClaimName)
			}
			found[c.ClaimName] = v.Name
		}
	}
	if found["plain"] != "plain" || found["with-dots"] != "with-dots" {
		t.Errorf("fitting names were changed: %v", found)
	}
	for _, claim := range claims {
		if !slices.Contains(mounts(container(t, pod, "puller")), found[claim]+" /pvc_mounts/"+claim) {
			t.Errorf("%s is not mounted: %v", claim, mounts(container(t, pod, "puller")))
		}
	}
}

// No two claims get the same volume name.
func TestClaimVolumeNamesAreUnique(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[a-z]([a-z0-9.-]{0,8}[a-z0-9])?`), rapid.SampledFrom([]string{"models-dir", "etcd-config", "a.b", "a-b"}))
	rapid.Check(t, func(t *rapid.T) {
		p := podBuilder{RuntimeInputs: RuntimeInputs{Spec: &v1alpha1.ServingRuntimeSpec{}, Claims: rapid.SliceOfN(name, 0, 8).Draw(t, "claims")}}
		for _, own := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "volumes") {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: own})
		}
		volumes := map[string]bool{"models-dir": true, "etcd-config": true}
		for _, v := range p.Spec.Volumes {
			volumes[v.Name] = true
		}
		claims := map[string]bool{}
		for _, c := range p.claimVolumes() {
			if volumes[c.volume] || claims[c.claim] {
				t.Fatalf("%+v stands there twice or takes a name", c)
			}
			volumes[c.volume], claims[c.claim] = true, true
		}
		for _, claim := range p.Claims {
			if !claims[claim] {
				t.Fatalf("%s is missing", claim)
			}
		}
	})
}

// Pods start without storage credentials. [M39]
func TestStorageSecretIsOptional(t *testing.T) {
	for form, change := range forms {
		for _, v := range podOf(t, inputs(runtimeSpec(), change)).Volumes {
			if v.Name != volumeStorage {
				continue
			}
			if got := v.Secret.Optional != nil && *v.Secret.Optional; got != (form == "current") || v.Secret.SecretName != "storage-config" {
				t.Errorf("%s: unexpected Secret: %+v", form, v.Secret)
			}
		}
	}
}
