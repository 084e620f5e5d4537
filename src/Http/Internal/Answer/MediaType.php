<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

/** Media types of files by the extension of their name: https://www.iana.org/assignments/media-types. */
final class MediaType
{
    private const DEFAULT_TYPE = 'application/octet-stream';

    private const TYPES = [
        'aac' => 'audio/aac', 'apng' => 'image/apng', 'atom' => 'application/atom+xml', 'avi' => 'video/x-msvideo',
        'avif' => 'image/avif', 'bmp' => 'image/bmp', 'bz2' => 'application/x-bzip2', 'css' => 'text/css',
        'csv' => 'text/csv', 'doc' => 'application/msword',
        'docx' => 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
        'eot' => 'application/vnd.ms-fontobject', 'epub' => 'application/epub+zip', 'flac' => 'audio/flac',
        'gif' => 'image/gif', 'gz' => 'application/gzip', 'htm' => 'text/html', 'html' => 'text/html',
        'ico' => 'image/vnd.microsoft.icon', 'ics' => 'text/calendar', 'jpeg' => 'image/jpeg', 'jpg' => 'image/jpeg',
        'js' => 'text/javascript', 'json' => 'application/json', 'jsonld' => 'application/ld+json',
        'jxl' => 'image/jxl', 'm4a' => 'audio/mp4', 'm4v' => 'video/mp4', 'map' => 'application/json',
        'md' => 'text/markdown', 'mjs' => 'text/javascript', 'mkv' => 'video/matroska', 'mov' => 'video/quicktime',
        'mp3' => 'audio/mpeg', 'mp4' => 'video/mp4', 'mpeg' => 'video/mpeg',
        'odp' => 'application/vnd.oasis.opendocument.presentation',
        'ods' => 'application/vnd.oasis.opendocument.spreadsheet', 'odt' => 'application/vnd.oasis.opendocument.text',
        'oga' => 'audio/ogg', 'ogg' => 'audio/ogg', 'ogv' => 'video/ogg', 'opus' => 'audio/ogg', 'otf' => 'font/otf',
        'pdf' => 'application/pdf', 'png' => 'image/png', 'ppt' => 'application/vnd.ms-powerpoint',
        'pptx' => 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
        'rss' => 'application/rss+xml', 'rtf' => 'application/rtf', 'svg' => 'image/svg+xml',
        'tar' => 'application/x-tar', 'tif' => 'image/tiff', 'tiff' => 'image/tiff', 'ttf' => 'font/ttf',
        'txt' => 'text/plain', 'vtt' => 'text/vtt', 'wasm' => 'application/wasm', 'wav' => 'audio/wav',
        'weba' => 'audio/webm', 'webm' => 'video/webm', 'webmanifest' => 'application/manifest+json',
        'webp' => 'image/webp', 'woff' => 'font/woff', 'woff2' => 'font/woff2', 'xhtml' => 'application/xhtml+xml',
        'xls' => 'application/vnd.ms-excel',
        'xlsx' => 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xml' => 'application/xml',
        'xz' => 'application/x-xz', 'yaml' => 'application/yaml', 'yml' => 'application/yaml',
        'zip' => 'application/zip', 'zst' => 'application/zstd',
    ];

    public static function of(string $path): string
    {
        $type = self::TYPES[strtolower(pathinfo($path, \PATHINFO_EXTENSION))] ?? self::DEFAULT_TYPE;

        return str_starts_with($type, 'text/') ? "{$type}; charset=utf-8" : $type;
    }
}
