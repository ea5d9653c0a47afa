package settings

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzDocuments checks that no document makes Read panic or hang, modifies the base settings, or lets a namespace exceed its authority,
// and that accepted values are valid in a pod.
func FuzzDocuments(f *testing.F) {
	f.Add(allKeysDocument)
	for _, line := range keyLines(f) {
		f.Add(line)
	}
	f.Add("podsPerRuntime: none\nrestProxy: [1]\npayloadProcessors: ''")
	f.Add("a: &a [*a]\nrunTimePodLabels: {<<: *a}\ntls: *a")
	f.Add("modelMeshImage: {name: 'a:1', tag: 1.0, digest: null}\nmetrics: {port: 0x7}")
	f.Add("runtimePodLabels: &x {a.b/C: 1, y: ~}\nrunTimePodAnnotations: *x\nimagePullSecrets: [{name: *x}]")
	f.Add("{scaleToZero: {gracePeriodSeconds: 9223372036854775807}, ? [a] : b, !!binary x: 1, podsPerRuntime: !!float 3}")
	f.Fuzz(func(t *testing.T, text string) {
		base := Default()
		base.RuntimePodLabels = map[string]string{"base": "1"}
		got, _, err := Read(base, text)
		want := Default()
		want.RuntimePodLabels = map[string]string{"base": "1"}
		requireEqual(t, base, want)
		if err == nil {
			checkPodValues(t, got)
		}
		tenant, _, err := ReadOverride(base, text)
		if err != nil {
			return
		}
		checkPodValues(t, tenant)
		if tenant.PodsPerRuntime > maxNamespacePods {
			t.Errorf("a namespace set podsPerRuntime to %d, want at most %d", tenant.PodsPerRuntime, maxNamespacePods)
		}
		// A namespace can set these fields and no others.
		want.HeadlessService, want.PodsPerRuntime, want.GRPCMaxMessageSizeBytes = tenant.HeadlessService, tenant.PodsPerRuntime, tenant.GRPCMaxMessageSizeBytes
		want.EnableAccessLogging, want.RESTProxy.Enabled = tenant.EnableAccessLogging, tenant.RESTProxy.Enabled
		want.Metrics, want.ScaleToZero = tenant.Metrics, tenant.ScaleToZero
		for i, allowed := range resourcesOf(&want) {
			*allowed = *resourcesOf(&tenant)[i]
		}
		requireEqual(t, tenant, want)
	})
}

// checkPodValues checks that values are valid in a pod.
func checkPodValues(t *testing.T, s Settings) {
	t.Helper()
	if len(validation.IsDNS1035Label(s.ServiceName)) > 0 || s.ServicePort < 1 || s.ServicePort > 65535 || s.PodsPerRuntime < 0 || s.ScaleToZero.GracePeriod < 0 {
		t.Errorf("the settings %+v are not valid in pods", s)
	}
	for _, r := range resourcesOf(&s) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if request.Sign() < 0 || request.Cmp(limit) > 0 {
				t.Errorf("got request %s of %s, want it between 0 and the limit %s", request.String(), name, limit.String())
			}
		}
	}
	for _, image := range []Image{s.ModelMeshImage, s.RESTProxy.Image, s.StorageHelper.Image} {
		if reference := image.Reference(); reference == "" || strings.ContainsAny(reference, " \n\"") {
			t.Errorf("image reference %q is empty or contains whitespace or quotes", reference)
		}
	}
	for key, value := range s.RuntimePodLabels {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			t.Errorf("label %q: %q is not valid", key, value)
		}
	}
	for _, processor := range s.PayloadProcessors {
		if processor == "" || strings.ContainsAny(processor, " \t\n") {
			t.Errorf("payload processor %q is empty or contains whitespace", processor)
		}
	}
}

// FuzzStorageEntries checks that no entry causes a panic and that claims have valid names.
func FuzzStorageEntries(f *testing.F) {
	f.Add("key", []byte(`{"type":"pvc","name":"claim"}`))
	f.Add("default_pvc", []byte(`{"type":"pvc","name":7,"type":null}`))
	f.Add("x", []byte(`[{}]`))
	f.Fuzz(func(t *testing.T, key string, entry []byte) {
		claims, notes := StorageClaims(map[string][]byte{key: entry, "sound": []byte(`{"type":"pvc","name":"sound"}`)})
		found := false
		for _, claim := range claims {
			found = found || claim == "sound"
			if len(validation.IsDNS1123Subdomain(claim)) > 0 {
				t.Errorf("claim %q is not a valid name", claim)
			}
		}
		if !found || len(notes) > 1 {
			t.Errorf("got claims %q and notes %q, want claim sound and at most one note", claims, notes)
		}
	})
}

// Documents that are large or have many aliases must be decoded fast, because other namespaces wait for their settings while a Source
// decodes a document. The limit of a minute allows for slow machines.
func TestLargeDocuments(t *testing.T) {
	const size = maxDocumentBytes - 100
	fill := func(start string, piece func(i int) string) string {
		text := []byte(start)
		for i := 0; len(text) < size; i++ {
			text = append(text, piece(i)...)
		}
		return string(text)
	}
	numbered := func(start, format string) string {
		return fill(start, func(i int) string { return fmt.Sprintf(format, i) })
	}
	anchor := "a: &a {" + strings.Repeat("x", 1000) + ": 1, "
	for i := range 1000 {
		anchor += fmt.Sprintf("k%d: 1, ", i)
	}
	for name, text := range map[string]string{
		"many keys":            numbered("", "key%d: 1\n"),
		"one long key":         fill("? ", func(int) string { return "a" }) + "\n: 1\n",
		"deep lists":           fill("payloadProcessors: ", func(int) string { return "[" }),
		"deep maps":            fill("tls: ", func(int) string { return "{a: " }),
		"many labels":          numbered("runtimePodLabels:\n", "  l%d: v\n"),
		"many secrets":         numbered("imagePullSecrets:\n", "- {name: s%d, odd: 1}\n"),
		"many variables":       numbered("internalModelMeshEnvVars:\n", "- {name: 'A B', value: v%d}\n"),
		"merged aliases":       fill(anchor+"}\nrunTimePodLabels: {<<: [", func(int) string { return "*a, " }) + "]}",
		"aliased objects":      fill(anchor+"}\nimagePullSecrets: [", func(int) string { return "*a, " }) + "]",
		"recursive merge keys": "a: &a {<<: [*a, *a]}\nb: &b {<<: [*a, *a, *b]}\ntls: *b\nmetrics: {<<: *a}",
		"billion laughs":       "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\npayloadProcessors: *c\ntls: {a: *c}",
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() {
				_, notes, err := Read(Default(), text)
				if len(notes) > maxMessages+1 {
					t.Errorf("got %d notes, want at most %d", len(notes), maxMessages+1)
				}
				done <- err
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("reading the document takes more than a minute")
			}
		})
	}
}
