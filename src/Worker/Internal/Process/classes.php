<?php

declare(strict_types=1);

// Loads the classes of a worker, because no autoloader exists yet. Each further class would delay the worker's start.
// The closure keeps its variables out of the global scope, which the bootstrap and the tasks see.

(static function (): void {
    foreach ([
        '' => ['SpindleException'],
        'Internal/' => ['Warnings', 'ThrownText', 'FrameHandler', 'FrameReader', 'MalformedFrameException'],
        'Internal/Launcher/' => ['LauncherProtocol'],
        'Worker/' => ['UnserializableException', 'Thrown', 'TaskContext'],
        'Worker/Internal/' => [
            'WorkerProtocol', 'SharedFlags', 'ValuePacking', 'DetachedCall', 'ValuePath', 'SerializationKind',
            'SerializationFailure', 'SerializeLock', 'SerializabilityCheck', 'ValueSerializer', 'TaskCode',
            'SentClosure', 'SentCallable', 'ClosureUnpacker', 'ClosureStream',
        ],
        'Worker/Internal/Process/' => [
            'ThrownFailure', 'PoolLink', 'ResultBuffer', 'WorkerLifecycle', 'InitialState', 'LoopCallbacks',
            'ItemSender', 'TaskDecoder', 'Worker', 'WorkerBoot',
        ],
    ] as $folder => $classes) {
        foreach ($classes as $class) {
            require_once dirname(__DIR__, 3) . "/{$folder}{$class}.php";
        }
    }
})();
