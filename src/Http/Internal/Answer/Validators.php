<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Psr\Http\Message\ServerRequestInterface;

/** ETag and modification time of a representation. Evaluates the conditions of requests: RFC 9110, 13. */
final readonly class Validators
{
    private const ETAG_PATTERN = '@(W/)?("[\x21\x23-\x7e\x80-\xff]*+")@';

    /**
     * @param string   $tag      ETag with its quotes
     * @param int|null $modified Unix time; null when unknown
     * @param int      $now      Unix time
     */
    public function __construct(private string $tag, private ?int $modified, private int $now) {}

    /** @return 304|412|null status to send instead of the representation (13.2.2); null to send the representation */
    public function refusal(ServerRequestInterface $request): ?int
    {
        $holds = $request->hasHeader('If-Match')
            ? $this->matches($request->getHeaderLine('If-Match'), true)
            : $this->isModifiedAfter($request->getHeaderLine('If-Unmodified-Since')) !== true;
        if (!$holds) {
            return 412;
        }
        $differs = $request->hasHeader('If-None-Match')
            ? !$this->matches($request->getHeaderLine('If-None-Match'), false)
            : $this->isModifiedAfter($request->getHeaderLine('If-Modified-Since')) ?? true;

        return $differs ? null : 304;
    }

    /** Returns whether a part may be sent: If-Range is absent or names this representation (RFC 9110, 13.1.5). */
    public function allowPart(ServerRequestInterface $request): bool
    {
        $condition = $request->getHeaderLine('If-Range');
        if ($condition === '' || $condition === $this->tag) {
            return !str_starts_with($condition, 'W/');
        }

        // A recently modified file could change again without a new modification time. So no date proves that the file
        // is the same. $modified may be 1 s too early (OpenFile::lastModified()), so it counts as recent for 1 s more.
        $recentSeconds = OpenFile::RECENT_SECONDS + 1;

        return $this->modified !== null
            && $this->modified < $this->now - $recentSeconds
            && HttpDate::parse($condition, $this->now) === $this->modified;
    }

    private function matches(string $field, bool $strongly): bool
    {
        if (trim($field, " \t") === '*') {
            return true;
        }
        preg_match_all(self::ETAG_PATTERN, $field, $tags, \PREG_SET_ORDER);
        foreach ($tags as [, $weak, $tag]) {
            if ($strongly ? $weak === '' && $tag === $this->tag : $tag === self::opaque($this->tag)) {
                return true;
            }
        }

        return false;
    }

    /** Returns whether the representation was modified after a time; null when either time is unknown. */
    private function isModifiedAfter(string $date): ?bool
    {
        $time = HttpDate::parse($date, $this->now);

        return $time === null || $this->modified === null ? null : $this->modified > $time;
    }

    private static function opaque(string $tag): string
    {
        return str_starts_with($tag, 'W/') ? substr($tag, 2) : $tag;
    }
}
