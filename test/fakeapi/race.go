//go:build race

package fakeapi

const raceDetector = true
