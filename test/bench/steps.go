package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const (
	namespace = "opendatahub"
	image     = "quay.io/example/mlflow:v3"
	// warmUp is how long a process runs before its memory is measured.
	warmUp = 10 * time.Second
	// rounds is the number of repetitions of a measurement that varies.
	rounds = 5
	// poll is short compared with the measured times.
	poll = 10 * time.Millisecond
)

// idle starts the manager in a cluster without objects to reconcile.
func (b *bench) idle(ctx context.Context) error {
	installed, err := operator.Install(ctx, b.instance, "config/default")
	if err != nil {
		return err
	}
	routing, err := b.routing(ctx, installed.ServiceAccount.Namespace)
	if err != nil {
		return err
	}
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	b.options = operator.Options{
		Binary: b.binary, ServiceAccount: installed.ServiceAccount, WebhookPort: installed.WebhookPort, Args: []string{"--metrics-secure=false"},
		Env: append(routing, "MLFLOW_IMAGE="+image, "MLFLOW_URL=https://gateway.example.com"),
	}
	if b.profiles != "" {
		b.options.Args = []string{"--pprof"}
		if err := b.authorizeProfiles(ctx); err != nil {
			return err
		}
	}
	if b.manager, err = operator.Start(ctx, b.instance, b.options); err != nil {
		return err
	}
	if err := b.pause(ctx, warmUp); err != nil {
		return err
	}
	reads, writes, others, err := b.requests(start)
	if err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.note("idle resident memory, no objects", mebibytes(rss), "<= 60 MiB", "312 MiB in sum")
	b.note("first start, no objects", fmt.Sprintf("%d reads, %d writes, %s", reads, writes, others), "a write for each object that it makes or completes", "36 reads, 20 writes")
	return nil
}

// restartIdle counts the reads of a second process when no object has changed. `-list` shows each request. With all components they are 37,
// each once in the life of a process; the target is older than most of them. Watched objects need no reads, since their watches start
// with the existing objects.
//
//   - 8 lists of single objects that are watched by name, because the ServiceAccount may not read others of their kind: domain and TLS
//     profile of the platform, settings, location of KubeRay;
//   - 7 lists of objects that the replaced operators may have left: the cache does not contain them, as they lack our label;
//   - 3 settings of the replaced AppWrapper and Ray controllers, without which nothing can be reconciled;
//   - 10 for the certificate of the webhooks and the CA bundle in each object that contains it;
//   - 3 for webhooks of the CodeFlare operator without an endpoint, and for the storage version of registries;
//   - 6 for the namespace of the manager, which ModelMesh always serves: two controllers need its UID, the etcd Secret is not cached,
//     and the fields of each applied object are checked once.
func (b *bench) restartIdle(ctx context.Context) error {
	return b.restarted(ctx, "next start, no objects", "<= 10 reads, 0 writes", "")
}

// server returns the measured MLflow, which has every kind of child.
func server() *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: mlflowv1.GroupVersion.String(), Kind: "MLflow"},
		ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName},
	}
	m.Spec.BackendStoreURI, m.Spec.ArtifactsDestination, m.Spec.ServeArtifacts = "sqlite:////mlflow/mlflow.db", "file:///mlflow/artifacts", true
	m.Spec.Storage = &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	return m
}

// children returns the objects of the server as rendered by the program, without owners.
func (b *bench) children(ctx context.Context) ([]*unstructured.Unstructured, error) {
	manifest, err := yaml.Marshal(server())
	if err != nil {
		return nil, fmt.Errorf("encoding the MLflow: %w", err)
	}
	command := exec.CommandContext(ctx, b.binary, "render", "-f", "-", "--platform=openshift", "--namespace="+namespace)
	command.Stdin, command.Env = bytes.NewReader(manifest), []string{"MLFLOW_IMAGE=" + image, "MLFLOW_URL=https://gateway.example.com"}
	output, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("rendering: %w\n%s", err, output)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(output), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("decoding what was rendered: %w", err)
		}
		object.SetOwnerReferences(nil)
		objects = append(objects, object)
	}
	return objects, nil
}

// creation compares the manager with a client that applies the same objects in sequence. The last MLflow is kept for the next
// steps.
func (b *bench) creation(ctx context.Context) error {
	objects, err := b.children(ctx)
	if err != nil {
		return err
	}
	var bare, managed []time.Duration
	var writes int
	for range rounds {
		if err := b.clear(ctx, append([]*unstructured.Unstructured{wrapped(server())}, objects...)); err != nil {
			return err
		}
		took, err := b.applyBare(ctx, objects)
		if err != nil {
			return err
		}
		bare = append(bare, took)
		if err := b.clear(ctx, objects); err != nil {
			return err
		}
		if took, writes, err = b.createServer(ctx, objects); err != nil {
			return err
		}
		managed = append(managed, took)
	}
	b.note("creating one MLflow: writes", fmt.Sprintf("%d for %d objects", writes, len(objects)), "children + 1 for the server, which follows the migration + 4 to 6 status", "114")
	b.note("creating one MLflow: until all objects exist", fmt.Sprintf("%d ms; bare client %d ms: %.2f times; medians of %d",
		median(managed).Milliseconds(), median(bare).Milliseconds(), median(managed).Seconds()/median(bare).Seconds(), rounds), "<= 1.5 times", "")
	b.noteRatio("creating one MLflow", median(managed).Seconds()/median(bare).Seconds())
	return nil
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// wrapped returns an object with only kind and name.
func wrapped(m *mlflowv1.MLflow) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.GroupVersionKind())
	u.SetName(m.Name)
	return u
}

func (b *bench) applyBare(ctx context.Context, objects []*unstructured.Unstructured) (time.Duration, error) {
	start := b.clock.Now()
	for _, object := range objects {
		config := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		if err := b.admin.Apply(ctx, config, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return 0, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return b.clock.Since(start), nil
}

// createServer returns the time until all objects existed, and the number of writes until the manager was idle.
func (b *bench) createServer(ctx context.Context, objects []*unstructured.Unstructured) (took time.Duration, writes int, err error) {
	begin, err := b.audit.Position()
	if err != nil {
		return 0, 0, err
	}
	start := b.clock.Now()
	if err := b.admin.Create(ctx, server()); err != nil {
		return 0, 0, fmt.Errorf("creating the MLflow: %w", err)
	}
	for _, object := range objects {
		if err := b.until(ctx, poll, func() (bool, error) { return b.exists(ctx, object) }); err != nil {
			return 0, 0, fmt.Errorf("waiting for %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	took = b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return 0, 0, err
	}
	_, writes, _, err = b.requests(begin)
	return took, writes, err
}

func (b *bench) exists(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := b.admin.Get(ctx, client.ObjectKeyFromObject(object), live)
	return err == nil, client.IgnoreNotFound(err)
}

// clear deletes objects and waits for their deletion; a PersistentVolumeClaim remains until no pod uses it.
func (b *bench) clear(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := b.admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		if err := b.until(ctx, 10*poll, func() (bool, error) {
			found, err := b.exists(ctx, object)
			return !found, err
		}); err != nil {
			return fmt.Errorf("waiting for the end of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// measureIdle observes the idle manager, first without changes, then after a change of every child, which also yields the duration of a
// reconcile without differences.
func (b *bench) measureIdle(ctx context.Context) error {
	objects, err := b.children(ctx)
	if err != nil {
		return err
	}
	watch := func(name string) error {
		start, err := b.audit.Position()
		if err != nil {
			return err
		}
		if err := b.pause(ctx, b.window); err != nil {
			return err
		}
		reads, writes, _, err := b.requests(start)
		b.note(fmt.Sprintf("%s, %s", name, b.window), fmt.Sprintf("%d reads, %d writes", reads, writes), "0 writes", "96 writes when its pod is not ready")
		return err
	}
	if err := watch("at rest"); err != nil {
		return err
	}
	before, err := b.metrics(ctx)
	if err != nil {
		return err
	}
	for _, object := range objects {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"bench/touched":"yes"}}}`))
		if err := b.admin.Patch(ctx, object.DeepCopy(), patch); err != nil {
			return fmt.Errorf("touching %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := watch("after every object was touched"); err != nil {
		return err
	}
	after, err := b.metrics(ctx)
	const seconds, passes = "controller_runtime_reconcile_time_seconds_sum", "controller_runtime_reconcile_time_seconds_count"
	if count := after[passes] - before[passes]; count > 0 {
		b.note("one reconcile over a settled MLflow", fmt.Sprintf("%.2f ms, mean of %.0f", 1000*(after[seconds]-before[seconds])/count, count), "", "16 ms for each apply")
	}
	return err
}

// restart counts the requests of a new process.
func (b *bench) restart(ctx context.Context) error {
	return b.restarted(ctx, "restart with one MLflow", "bounded reads, 0 writes", "344 reads, 1,142 writes for 100 of each kind")
}

func (b *bench) restarted(ctx context.Context, name, target, originals string) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	reads, writes, others, err := b.requests(start)
	b.note(name, fmt.Sprintf("%d reads, %d writes, %s", reads, writes, others), target, originals)
	return err
}

// foreign measures a new process before and after the creation of many foreign Secrets.
func (b *bench) foreign(ctx context.Context) error {
	rssBefore, heapBefore, err := b.memory(ctx)
	if err != nil {
		return err
	}
	otherNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	if err := b.admin.Create(ctx, otherNamespace); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	if err := runConcurrently(ctx, b.secrets, func(i int) error {
		secret := &corev1.Secret{Data: map[string][]byte{"release": bytes.Repeat([]byte("x"), 1000)}}
		secret.Namespace, secret.Name = []string{namespace, otherNamespace.Name}[i%2], fmt.Sprintf("sh.helm.release.v1.application-%d.v1", i)
		secret.Labels = map[string]string{"owner": "helm", "status": "deployed", "version": "1"}
		return client.IgnoreAlreadyExists(b.admin.Create(ctx, secret))
	}); err != nil {
		return fmt.Errorf("creating Secrets: %w", err)
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	rssAfter, heapAfter, err := b.memory(ctx)
	b.note(fmt.Sprintf("%d foreign Secrets: resident memory", b.secrets), "+"+mebibytes(rssAfter-rssBefore), "< 5 MiB more", "out of memory in the field")
	b.note(fmt.Sprintf("%d foreign Secrets: live heap", b.secrets), "+"+mebibytes(heapAfter-heapBefore), "< 5 MiB more", "")
	return err
}
