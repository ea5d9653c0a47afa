package meshsettings

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzDocuments: no document makes the reading panic or stall, changes what is below it, or lets a namespace say what it may not;
// and what is accepted can stand in a pod.
func FuzzDocuments(f *testing.F) {
	f.Add(everything)
	f.Add("podsPerRuntime: none\nrestProxy: [1]\npayloadProcessors: ''")
	f.Add("a: &a [*a]\nrunTimePodLabels: {<<: *a}\ntls: *a")
	f.Add("modelMeshImage: {name: 'a:1', tag: 1.0, digest: null}\nmetrics: {port: 0x7}")
	f.Add("runtimePodLabels: &x {a.b/C: 1, y: ~}\nrunTimePodAnnotations: *x\nimagePullSecrets: [{name: *x}]")
	f.Add("{scaleToZero: {gracePeriodSeconds: 9223372036854775807}, ? [a] : b, !!binary x: 1, podsPerRuntime: !!float 3}")
	f.Fuzz(func(t *testing.T, text string) {
		below := Default()
		below.RuntimePodLabels = map[string]string{"below": "1"}
		got, _, err := Read(below, text)
		want := Default()
		want.RuntimePodLabels = map[string]string{"below": "1"}
		same(t, below, want)
		if err == nil {
			plausible(t, got)
		}
		tenant, _, err := ReadOverride(below, text)
		if err != nil {
			return
		}
		plausible(t, tenant)
		if tenant.ServiceName != below.ServiceName || tenant.ServicePort != below.ServicePort || tenant.ServiceAccountName != below.ServiceAccountName ||
			tenant.ModelMeshImage != below.ModelMeshImage || tenant.StorageSecretName != below.StorageSecretName || tenant.TLS != below.TLS ||
			tenant.ModelMeshEndpoint != below.ModelMeshEndpoint || len(tenant.InternalModelMeshEnvVars) > 0 || tenant.AllowAnyPVC {
			t.Errorf("a namespace said %+v", tenant)
		}
	})
}

// plausible checks what a pod could not have.
func plausible(t *testing.T, s Settings) {
	t.Helper()
	if len(validation.IsDNS1035Label(s.ServiceName)) > 0 || s.ServicePort < 1 || s.ServicePort > 65535 || s.PodsPerRuntime < 0 || s.ScaleToZero.GracePeriod < 0 {
		t.Errorf("%+v", s)
	}
	for _, r := range resourcesOf(&s) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if request.Sign() < 0 || request.Cmp(limit) > 0 {
				t.Errorf("%s of %s, limit %s", name, request.String(), limit.String())
			}
		}
	}
	for _, image := range []Image{s.ModelMeshImage, s.RESTProxy.Image, s.StorageHelper.Image} {
		if reference := image.Reference(); reference == "" || strings.ContainsAny(reference, " \n\"") {
			t.Errorf("image %q", reference)
		}
	}
	for key, value := range s.RuntimePodLabels {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			t.Errorf("label %q: %q", key, value)
		}
	}
	for _, one := range s.PayloadProcessors {
		if one == "" || strings.ContainsAny(one, " \t\n") {
			t.Errorf("processor %q", one)
		}
	}
}

// FuzzStorageEntries: no entry makes the reading panic, and claims are names of objects.
func FuzzStorageEntries(f *testing.F) {
	f.Add("key", []byte(`{"type":"pvc","name":"claim"}`))
	f.Add("default_pvc", []byte(`{"type":"pvc","name":7,"type":null}`))
	f.Add("x", []byte(`[{}]`))
	f.Fuzz(func(t *testing.T, key string, entry []byte) {
		claims, notices := StorageClaims(map[string][]byte{key: entry, "sound": []byte(`{"type":"pvc","name":"sound"}`)})
		found := false
		for _, claim := range claims {
			found = found || claim == "sound"
			if len(validation.IsDNS1123Subdomain(claim)) > 0 {
				t.Errorf("claim %q", claim)
			}
		}
		if !found || len(notices) > 1 {
			t.Errorf("%q %q", claims, notices)
		}
	})
}
