package resources

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// FuzzBuilders checks that the builders never panic, do not change the spec, and build a Deployment without duplicate keys from a valid spec,
// in both forms. [M1]
func FuzzBuilders(f *testing.F) {
	files, err := filepath.Glob("testdata/recordings/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recordings as seeds: %v", err)
	}
	for _, file := range files {
		objects, err := framework.ReadObjects(file)
		if err != nil {
			f.Fatal(err)
		}
		spec, err := json.Marshal(objects[0].Object["spec"])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(spec, true, true, "shelf,a.b", "k")
	}
	for _, seed := range []string{
		`{}`, `{"containers":[{}]}`, `{"containers":[{},{}],"volumes":[{}]}`, `{"builtInAdapter":{},"containers":[{"env":[{},{}],"ports":[{},{}],"volumeMounts":[{},{}]}]}`,
		`{"grpcEndpoint":"","affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}}`,
		`{"grpcEndpoint":"port:1","containers":[{"securityContext":{"capabilities":{}}}],"imagePullSecrets":[{}],"tolerations":[{}]}`,
		`{"grpcEndpoint":"port:1","containers":[{"resources":{"limits":{"memory":"-1"}}}],"storageHelper":{"disabled":true}}`,
	} {
		f.Add([]byte(seed), false, false, "", "")
	}
	f.Fuzz(func(t *testing.T, specJSON []byte, hasAdapter, hasProxy bool, claims, annotation string) {
		spec := &v1alpha1.ServingRuntimeSpec{}
		if json.Unmarshal(specJSON, spec) != nil {
			return
		}
		if !hasAdapter {
			spec.BuiltInAdapter = nil
		}
		original := spec.DeepCopy()
		isValid := modelmesh.Validate(spec, meshsettings.Default().BuiltInServerTypes) == nil
		modelmesh.Warnings(spec, meshsettings.Default().BuiltInServerTypes)
		BuildConstraints("vision", map[string]*v1alpha1.ServingRuntimeSpec{annotation: spec}, true)
		annotations := map[string]string{modelmesh.AnnotationAutoscalerClass: "hpa", modelmesh.AnnotationMinScale: annotation, annotationLoadingConcurrency: annotation, annotation: annotation}
		scale, _ := modelmesh.ParseAutoscaling(annotations)
		for _, form := range []Form{Current, Legacy} {
			in := inputs(spec, withTLS, withClaims(strings.Split(claims, ",")...), func(in *RuntimeInputs) {
				in.Form, in.Annotations, in.Restricted = form, annotations, hasProxy
				if hasProxy {
					in.Proxy = newOAuthProxy()
				}
			})
			BuildAutoscaler(in, annotations, scale)
			d, err := BuildDeployment(in)
			if err != nil {
				continue
			}
			if h := TemplateHash(d.Config); len(h) != 16 {
				t.Errorf("TemplateHash returned %q", h)
			}
			if isValid {
				checkUniqueKeys(t, decode[appsv1.Deployment](t, buildDeploymentFor(t, in)))
			}
		}
		before, _ := json.Marshal(original)
		if after, _ := json.Marshal(spec); string(after) != string(before) {
			t.Errorf("the builders changed the spec from %s to %s", before, after)
		}
	})
}

// errorReporter is the common interface of testing.T and rapid.T.
type errorReporter interface{ Errorf(string, ...any) }

// checkUniqueKeys checks that lists that server-side apply merges by key have no duplicate keys, which the API server rejects. It also checks
// that mounted volumes exist, and that only the puller starts after the mesh.
func checkUniqueKeys(t errorReporter, d *appsv1.Deployment) {
	pod := d.Spec.Template.Spec
	checkDistinct(t, "containers", pod.Containers, func(c corev1.Container) string { return c.Name })
	checkDistinct(t, "volumes", pod.Volumes, func(v corev1.Volume) string { return v.Name })
	checkDistinct(t, "imagePullSecrets", pod.ImagePullSecrets, func(r corev1.LocalObjectReference) string { return r.Name })
	for _, c := range pod.Containers {
		checkDistinct(t, "env of "+c.Name, c.Env, func(v corev1.EnvVar) string { return v.Name })
		checkDistinct(t, "mounts of "+c.Name, c.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath })
	}
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("container %s mounts volume %s, which does not exist", c.Name, m.Name)
			}
		}
	}
	if last := pod.Containers[len(pod.Containers)-1].Name; last != meshContainer && last != pullerContainer {
		t.Errorf("container %s starts after the mesh", last)
	}
}

func checkDistinct[T any](t errorReporter, description string, list []T, key func(T) string) {
	seen := map[string]bool{}
	for _, item := range list {
		if seen[key(item)] {
			t.Errorf("%s: key %q is not unique", description, key(item))
		}
		seen[key(item)] = true
	}
}

// A spec with conflicting names, ports or paths is rejected by the validation or by the builder, or results in a valid Deployment.
func TestConflictingSpecsAreRejectedOrBuilt(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "server", "triton", "triton-adapter", "tls-certs", "models-dir", "shelf", "oauth-proxy", "proxy-tls"})
	path := rapid.SampledFrom([]string{"/a", "/b", "/models", "/tmp/own", "/pvc_mounts/shelf"})
	number := rapid.Int32Range(1, 3)
	rapid.Check(t, func(t *rapid.T) {
		spec := runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Containers = nil })
		for range rapid.IntRange(0, 3).Draw(t, "containers") {
			c := corev1.Container{Name: name.Draw(t, "container"), Image: "i"}
			for range rapid.IntRange(0, 3).Draw(t, "fields") {
				c.Env = append(c.Env, corev1.EnvVar{Name: name.Draw(t, "env"), Value: path.Draw(t, "value")})
				c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: number.Draw(t, "port")})
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name.Draw(t, "mount"), MountPath: path.Draw(t, "path")})
			}
			spec.Containers = append(spec.Containers, c)
		}
		for range rapid.IntRange(0, 2).Draw(t, "volumes") {
			withVolume(name.Draw(t, "volume"))(spec)
		}
		rapid.SampledFrom([]func(*v1alpha1.ServingRuntimeSpec){withSockets, withoutPuller, func(*v1alpha1.ServingRuntimeSpec) {}, func(s *v1alpha1.ServingRuntimeSpec) {
			s.BuiltInAdapter = &v1alpha1.BuiltInAdapter{ServerType: "triton"}
		}}).Draw(t, "kind")(spec)
		if modelmesh.Validate(spec, meshsettings.Default().BuiltInServerTypes) != nil {
			t.Skip()
		}
		in := inputs(spec, withClaims("shelf", "a.b"))
		rapid.SampledFrom([]func(*RuntimeInputs){withTLS, legacyForm, restricted, withoutRESTAndMetrics, func(in *RuntimeInputs) {
			in.Proxy = newOAuthProxy()
		}}).Draw(t, "inputs")(&in)
		d, err := BuildDeployment(in)
		if err != nil {
			if !strings.Contains(err.Error(), "spec.") || !strings.Contains(err.Error(), "choose another") {
				t.Fatalf("error %v, want one with the field and the fix", err)
			}
			return
		}
		data, err := json.Marshal(d.Config)
		if err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		if err := json.Unmarshal(data, deployment); err != nil {
			t.Fatal(err)
		}
		checkUniqueKeys(t, deployment)
	})
}
