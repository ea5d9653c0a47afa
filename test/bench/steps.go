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
	// rounds of a measurement that varies.
	rounds = 5
	// poll is short against what is measured with it.
	poll = 10 * time.Millisecond
)

// idle starts the manager where there is nothing for it to do.
func (b *bench) idle(ctx context.Context) error {
	installed, err := operator.Install(ctx, b.instance, "config/default")
	if err != nil {
		return err
	}
	routing, err := b.routing(ctx, installed.ServiceAccount.Namespace)
	if err != nil {
		return err
	}
	mark, err := b.audit.Mark()
	if err != nil {
		return err
	}
	b.manager, err = operator.Start(ctx, b.instance, operator.Options{
		Binary: b.binary, ServiceAccount: installed.ServiceAccount, WebhookPort: installed.WebhookPort, Args: []string{"--metrics-secure=false"},
		Env: append(routing, "MLFLOW_IMAGE="+image, "MLFLOW_URL=https://gateway.example.com"),
	})
	if err != nil {
		return err
	}
	if err := b.pause(ctx, warmUp); err != nil {
		return err
	}
	reads, writes, others, err := b.requests(mark)
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

// again counts what the next process asks for where everything is as the first has left it. `-list` shows each request. They are
// 37 with all components, each once in the life of a process; the target is older than most of them. What is only watched costs
// none, since watches bring what there is.
//
//   - 8 lists of single objects that are watched by their names, where the account may see nothing else of the kind: domain and TLS
//     profile of the platform, settings, where KubeRay is;
//   - 7 lists of what the originals may have left behind that nothing of ours stands for: memory does not show it, as it lacks our label;
//   - 3 older settings of AppWrapper and Ray, without which nothing may be decided yet;
//   - 10 for the certificate of the webhooks and whether each object that names its CA has the present one;
//   - 3 for webhooks of the CodeFlare operator that nothing answers, and for the version in which registries are stored;
//   - 6 for the namespace of the manager, which ModelMesh always serves: two controllers need its uid, the etcd Secret is not held in
//     memory, and of each object that is applied the fields are checked once.
func (b *bench) again(ctx context.Context) error {
	return b.restarted(ctx, "next start, no objects", "<= 10 reads, 0 writes", "")
}

// server is the MLflow that is measured: every kind of child exists.
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

// children are the objects of the server as the program renders them, without owners.
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

// creation compares the manager with a client that merely applies the same objects, the one after the other. The last
// MLflow stays for the steps that follow.
func (b *bench) creation(ctx context.Context) error {
	objects, err := b.children(ctx)
	if err != nil {
		return err
	}
	var bare, ours []time.Duration
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
		ours = append(ours, took)
	}
	b.note("creating one MLflow: writes", fmt.Sprintf("%d for %d objects", writes, len(objects)), "children + 1 for the server, which follows the migration + 4 to 6 status", "114")
	b.note("creating one MLflow: until all objects exist", fmt.Sprintf("%d ms; bare client %d ms: %.2f times; medians of %d",
		median(ours).Milliseconds(), median(bare).Milliseconds(), median(ours).Seconds()/median(bare).Seconds(), rounds), "<= 1.5 times", "")
	return nil
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// wrapped is an object of which only kind and name matter.
func wrapped(m *mlflowv1.MLflow) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.GroupVersionKind())
	u.SetName(m.Name)
	return u
}

func (b *bench) applyBare(ctx context.Context, objects []*unstructured.Unstructured) (time.Duration, error) {
	began := b.clock.Now()
	for _, object := range objects {
		config := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		if err := b.admin.Apply(ctx, config, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return 0, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return b.clock.Since(began), nil
}

// createServer returns how long it took until every object existed, and how many writes there were until the rest.
func (b *bench) createServer(ctx context.Context, objects []*unstructured.Unstructured) (took time.Duration, writes int, err error) {
	mark, err := b.audit.Mark()
	if err != nil {
		return 0, 0, err
	}
	began := b.clock.Now()
	if err := b.admin.Create(ctx, server()); err != nil {
		return 0, 0, fmt.Errorf("creating the MLflow: %w", err)
	}
	for _, object := range objects {
		if err := b.until(ctx, poll, func() (bool, error) { return b.exists(ctx, object) }); err != nil {
			return 0, 0, fmt.Errorf("waiting for %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	took = b.clock.Since(began)
	if err := b.untilAtRest(ctx); err != nil {
		return 0, 0, err
	}
	_, writes, _, err = b.requests(mark)
	return took, writes, err
}

func (b *bench) exists(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := b.admin.Get(ctx, client.ObjectKeyFromObject(object), live)
	return err == nil, client.IgnoreNotFound(err)
}

// clear deletes objects and waits until they are gone; a claim waits for the pods that use it.
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

// rest watches the manager while nothing happens, and after every child was touched, which also shows how long a reconcile over
// a settled server takes.
func (b *bench) rest(ctx context.Context) error {
	objects, err := b.children(ctx)
	if err != nil {
		return err
	}
	watch := func(name string) error {
		mark, err := b.audit.Mark()
		if err != nil {
			return err
		}
		if err := b.pause(ctx, b.window); err != nil {
			return err
		}
		reads, writes, _, err := b.requests(mark)
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

// restart counts what a new process asks for.
func (b *bench) restart(ctx context.Context) error {
	return b.restarted(ctx, "restart with one MLflow", "bounded reads, 0 writes", "344 reads, 1,142 writes for 100 of each kind")
}

func (b *bench) restarted(ctx context.Context, name, target, originals string) error {
	mark, err := b.audit.Mark()
	if err != nil {
		return err
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.untilAtRest(ctx); err != nil {
		return err
	}
	reads, writes, others, err := b.requests(mark)
	b.note(name, fmt.Sprintf("%d reads, %d writes, %s", reads, writes, others), target, originals)
	return err
}

// foreign measures a fresh process before and after many Secrets came that belong to others.
func (b *bench) foreign(ctx context.Context) error {
	rssBefore, heapBefore, err := b.memory(ctx)
	if err != nil {
		return err
	}
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	if err := b.admin.Create(ctx, elsewhere); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	if err := together(ctx, b.secrets, func(i int) error {
		secret := &corev1.Secret{Data: map[string][]byte{"release": bytes.Repeat([]byte("x"), 1000)}}
		secret.Namespace, secret.Name = []string{namespace, elsewhere.Name}[i%2], fmt.Sprintf("sh.helm.release.v1.application-%d.v1", i)
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
