package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// recheck is how often Secret and targets are read though nothing is due and no watch has shown a change of them.
	resyncInterval = time.Hour
	// retryMin and retryMax bound the pauses after trouble.
	minBackoff, maxBackoff = time.Second, time.Minute
	// attempts is how often a sync starts over after another replica was faster.
	maxSyncAttempts = 5
	// trustPatience bounds how long readiness waits for targets that cannot be written.
	injectionTimeout = 30 * time.Second
)

// Options of an Authority. All but Labels, Targets and Dynamic are required.
type Options struct {
	// Client reads and writes without a cache: the Secret and the targets by name only.
	Client client.Client
	// Secret holds the CA and the serving certificate.
	Secret types.NamespacedName
	// Labels of the Secret when it is created.
	Labels map[string]string
	// DNSNames of the serving certificate, the first of which is its common name.
	DNSNames []string
	// Targets learn the CA.
	Targets []Target
	// Dynamic watches the Secret and the targets by their names, so that what another client deletes or overwrites is put right at
	// once. Nil for none.
	Dynamic dynamic.Interface
	// Clock tells validity and due dates.
	Clock clock.Clock
	// Log receives renewals and troubles.
	Log logr.Logger
}

// Authority issues, shares, serves and renews the certificate. It is a manager Runnable that runs on every replica.
type Authority struct {
	Options
	current      atomic.Pointer[certificatePair]
	servingSince atomic.Pointer[time.Time] // when there was a certificate first
	injected     atomic.Bool               // the targets held the CA once, or readiness has waited for long enough
	changed      chan struct{}             // the Secret or a target holds something else
}

// NewAuthority returns an Authority that serves nothing before Start or the first Sync.
func NewAuthority(o Options) *Authority {
	return &Authority{Options: o, changed: make(chan struct{}, 1)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: webhooks serve on every replica.
func (a *Authority) NeedLeaderElection() bool { return false }

// GetCertificate fits tls.Config. It returns an error until the first sync has succeeded.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p := a.current.Load()
	if p == nil {
		return nil, errors.New("the serving certificate is not ready yet")
	}
	return p.tlsCertificate, nil
}

// Ready is a readiness check: it fails until there is a certificate to serve, and the API server knows its CA. Each replica
// sees to that itself, so none waits for another. Targets that cannot be written delay it for trustPatience.
func (a *Authority) Ready(*http.Request) error {
	if _, err := a.GetCertificate(nil); err != nil {
		return err
	}
	if a.injected.Load() {
		return nil
	}
	if a.Clock.Since(*a.servingSince.Load()) < injectionTimeout {
		return errors.New("not all webhook configurations contain the CA of the serving certificate yet")
	}
	if a.injected.CompareAndSwap(false, true) {
		a.Log.Info("Not waiting any longer for the CA to stand in all webhook configurations; calls of the others fail until it does", "after", injectionTimeout)
	}
	return nil
}

// Start implements manager.Runnable. It returns when ctx ends and never with an error: what fails is tried again, and
// what is served meanwhile stays valid for a third of its life.
func (a *Authority) Start(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	a.startWatches(ctx, &watches)
	failures := time.Duration(0)
	for {
		pause, err := a.Sync(ctx)
		if err != nil {
			failures = min(max(2*failures, minBackoff), maxBackoff)
			pause = failures
			a.Log.Error(err, "Keeping the webhook certificate failed and will be tried again", "after", pause)
		} else {
			failures = 0
		}
		if !a.waitForChange(ctx, pause) {
			return nil
		}
	}
}

// rest returns after the pause, or when the Secret or a target has changed, but not before retryMin: another client may write it as often as we do. It
// returns false when ctx ends.
func (a *Authority) waitForChange(ctx context.Context, pause time.Duration) bool {
	if a.Dynamic != nil && pause > minBackoff {
		if !a.wait(ctx, minBackoff, nil) {
			return false
		}
		pause -= minBackoff
	}
	return a.wait(ctx, pause, a.changed)
}

func (a *Authority) wait(ctx context.Context, pause time.Duration, moved <-chan struct{}) bool {
	timer := a.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-moved:
	case <-timer.C():
	}
	return true
}

// Sync does what is due once and returns how long nothing is.
func (a *Authority) Sync(ctx context.Context) (time.Duration, error) {
	p, err := a.syncSecret(ctx)
	if err != nil {
		return 0, fmt.Errorf("sharing Secret %s: %w", a.Secret, err)
	}
	// With nothing to lose the certificate is served at once; otherwise the CA must be known first.
	now := a.Clock.Now()
	a.servingSince.CompareAndSwap(nil, &now)
	if a.current.CompareAndSwap(nil, p) {
		recordExpiry(p)
	}
	known, err := a.injectCA(ctx, p.data[secretKeyCACert])
	if known {
		a.injected.Store(true)
	}
	if err != nil {
		return 0, err
	}
	a.current.Store(p)
	recordExpiry(p)
	return max(min(p.leaf.Next.Sub(a.Clock.Now()), resyncInterval), minBackoff), nil
}

// share reads the Secret, renews what is due and writes it back, until reading and writing agree.
func (a *Authority) syncSecret(ctx context.Context) (*certificatePair, error) {
	var want *certificatePair
	overtaken := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err := retry.OnError(wait.Backoff{Steps: maxSyncAttempts}, overtaken, func() error {
		live := &corev1.Secret{}
		err := a.Client.Get(ctx, a.Secret, live)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return fmt.Errorf("reading: %w", err)
		}
		if want, err = a.ensurePair(live); err != nil || want.matches(live.Data) {
			return err
		}
		if err := a.writeSecret(ctx, live, want, missing); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		return nil
	})
	return want, err
}

// decide returns what the Secret should hold. Where it holds nothing usable, what this replica serves is worth
// keeping: the cluster trusts it already.
func (a *Authority) ensurePair(live *corev1.Secret) (*certificatePair, error) {
	now := a.Clock.Now()
	data := live.Data
	if _, err := LoadRoot(data, now); err != nil {
		if len(data) > 0 {
			a.Log.Info("Repairing the Secret of the webhook certificate", "secret", a.Secret.String(), "reason", err.Error())
		}
		if served := a.current.Load(); served != nil {
			data = served.data
		}
	}
	return ensurePair(data, a.DNSNames, now)
}

func (a *Authority) writeSecret(ctx context.Context, live *corev1.Secret, want *certificatePair, missing bool) error {
	a.Log.Info("Issuing the webhook certificate", "secret", a.Secret.String(),
		"expires", want.leaf.Expires, "caExpires", want.root.Expires)
	if missing {
		return a.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Secret.Namespace, Name: a.Secret.Name, Labels: a.Labels},
			Type:       corev1.SecretTypeTLS,
			Data:       want.data,
		})
	}
	live.Data = want.data
	return a.Client.Update(ctx, live) // the resourceVersion of the read stands in it
}
