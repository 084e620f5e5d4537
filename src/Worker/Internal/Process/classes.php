<?php

declare(strict_types=1);

// Loads the classes of a worker, because no autoloader exists yet. Each further class would delay the worker's start.

require_once dirname(__DIR__, 3) . '/SpindleException.php';
require_once dirname(__DIR__, 3) . '/Internal/Warnings.php';
require_once dirname(__DIR__, 3) . '/Internal/FrameHandler.php';
require_once dirname(__DIR__, 3) . '/Internal/FrameReader.php';
require_once dirname(__DIR__, 3) . '/Internal/MalformedFrameException.php';
require_once dirname(__DIR__, 3) . '/Internal/Launcher/LauncherProtocol.php';
require_once dirname(__DIR__, 2) . '/UnserializableException.php';
require_once dirname(__DIR__, 2) . '/Thrown.php';
require_once dirname(__DIR__, 2) . '/TaskContext.php';
require_once dirname(__DIR__) . '/WorkerProtocol.php';
require_once dirname(__DIR__) . '/SharedFlags.php';
require_once dirname(__DIR__) . '/ValuePacking.php';
require_once dirname(__DIR__) . '/DetachedCall.php';
require_once dirname(__DIR__) . '/ValuePath.php';
require_once dirname(__DIR__) . '/SerializationKind.php';
require_once dirname(__DIR__) . '/SerializationFailure.php';
require_once dirname(__DIR__) . '/SerializeLock.php';
require_once dirname(__DIR__) . '/SerializabilityCheck.php';
require_once dirname(__DIR__) . '/ValueSerializer.php';
require_once dirname(__DIR__) . '/TaskCode.php';
require_once __DIR__ . '/ThrownFailure.php';
require_once __DIR__ . '/PoolLink.php';
require_once __DIR__ . '/ResultBuffer.php';
require_once __DIR__ . '/WorkerLifecycle.php';
require_once __DIR__ . '/InitialState.php';
require_once __DIR__ . '/LoopCallbacks.php';
require_once __DIR__ . '/ItemSender.php';
require_once __DIR__ . '/TaskDecoder.php';
require_once __DIR__ . '/Worker.php';
require_once __DIR__ . '/WorkerBoot.php';
